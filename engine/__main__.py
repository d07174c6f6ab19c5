"""`python -m engine` is `jms-bridge`."""

from engine.cli import main

if __name__ == "__main__":
    main()
