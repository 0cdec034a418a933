"""Makes `optimum-cli onnxruntime remat` known: optimum's program imports every file of this namespace, and nothing else
does. What is in `REGISTER_COMMANDS` can have no parent that comes from here, too, as `onnxruntime` does."""

try:
    from optimum.commands.base import CommandInfo
    from optimum.commands.onnxruntime.base import ONNXRuntimeCommand
    from remat_opt._optimum import RematCommand
except ImportError:
    # An optimum without ONNX Runtime has its other commands all the same.
    pass
else:
    info = CommandInfo(RematCommand.COMMAND.name, RematCommand.COMMAND.help, RematCommand)
    ONNXRuntimeCommand.SUBCOMMANDS = (*ONNXRuntimeCommand.SUBCOMMANDS, info)

REGISTER_COMMANDS = []
