import type { OptionSpec } from "../command.ts";

export const mountOption: OptionSpec = {
  name: "mount",
  value: "DIR[:PATH][:MODE]",
  repeat: true,
  summary: "A further folder, at PATH inside (default /mnt/NAME); MODE is ro (default), rw, or overlay: changes go with the sandbox",
};
