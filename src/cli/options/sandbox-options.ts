import type { OptionSpec } from "../command.ts";
import { hidingOptions } from "./hiding-options.ts";
import { networkOptions } from "./network-options.ts";
import { ociRuntimeOption } from "./runtime-options.ts";

/**
 * What a new sandbox is made of besides its workspace; the same wherever one is made, for a command or for an agent.
 */
export const sandboxOptions: readonly OptionSpec[] = [
  ociRuntimeOption,
  {
    name: "image",
    value: "REF",
    summary: "Start from an image: one built here, a name in a registry, an OCI layout, an archive or a root folder",
  },
  { name: "snapshot", value: "SNAPSHOT", summary: "Start from a snapshot, by its id or name", completes: ["snapshot"] },
  {
    name: "mount",
    value: "DIR[:PATH][:MODE]",
    repeat: true,
    summary: "A further folder, at PATH inside (default /mnt/NAME); MODE is ro (default), rw, or overlay: changes go with the sandbox",
  },
  ...hidingOptions,
  { name: "allow-hooks", summary: "With MODE rw: also let git's hooks and settings and shell start-up files be written" },
  { name: "env", short: "e", value: "K=V", repeat: true, summary: "A variable inside; K alone takes the value from outside" },
  { name: "station-access", summary: "Let programs inside report events and leave files with the station (CAISSON_SANDBOX_URL)" },
  { name: "allow-root", summary: "Let commands be root inside, and use sudo" },
  { name: "memory", short: "m", value: "SIZE", summary: "Memory for all processes together, such as 512m (default 4g)" },
  { name: "cpus", value: "N", summary: "CPUs, such as 1.5 (default 2)" },
  { name: "pids", value: "N", summary: "Processes and threads (default 1000)" },
  { name: "disk", value: "SIZE", summary: "How much may be written to disk (default: all but a reserve of the machine's)" },
  { name: "output-max", value: "SIZE", summary: "End a command whose output exceeds this" },
  ...networkOptions,
];
