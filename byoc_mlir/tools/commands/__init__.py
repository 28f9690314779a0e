"""The subcommands of `byoc`, one per file; each has `register(subparsers)`."""
