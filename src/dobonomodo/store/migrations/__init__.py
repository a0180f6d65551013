"""How a store of an older format becomes one of the newest; one file a format in versions/."""
