import type { SandboxTools } from "../verbs/sandbox-tools.ts";
import { lazyVerbs } from "./lazy-verbs.ts";

/** Loaded on first use. */
export const sandboxTools = lazyVerbs<SandboxTools>(
  { runCommand: "answer", copyIn: "answer", copyOut: "answer", unpackLayout: "answer" },
  async () => {
    const [copying, running, layouts] = await Promise.all([
      import("../sandbox/copy.ts"),
      import("../sandbox/run-command.ts"),
      import("../sandbox/tar/unpack-layout.ts"),
    ]);
    return { ...copying, ...running, ...layouts };
  },
);
