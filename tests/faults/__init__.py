"""A harness that fails or kills every verb at every call that changes a file, and looks at what is left."""
