"""A package, since the bridge that its tests share lives for a package."""
