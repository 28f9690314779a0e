"""The subcommands of `byoc`, one file each, with `add_arguments(parser)` and `run(arguments)`."""
