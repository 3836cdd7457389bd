"""The documentation as a site: `make docs`. Pages stay where they are, and their links as they are."""
