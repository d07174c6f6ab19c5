"""`python -m engine` is `jms-bridge`: how the supervisor starts its children."""

from engine.cli import main

if __name__ == "__main__":
    main()
