import { CommandStarted, SandboxCreated, SandboxEnded, type SandboxEvent } from "../contract/event.ts";
import type { HeldSandbox } from "../station/sandboxes/held-sandbox.ts";
import type { SandboxVerbs } from "../station/sandboxes/verbs.ts";

/** Sandboxes of a station that tell what is done with them here, as this process's own runtimes would. */
export function toldSandboxes(sandboxes: SandboxVerbs, onEvent: (event: SandboxEvent) => void): SandboxVerbs {
  return {
    ...sandboxes,
    async create(request, given) {
      const sandbox = await sandboxes.create(request, given);
      const { id, runtime, warnings } = sandbox.info;
      onEvent(SandboxCreated.make({ sandbox: id, runtime, warnings }));
      return told(sandbox, onEvent);
    },
    hold: async (id, given) => told(await sandboxes.hold(id, given), onEvent),
  };
}

function told(sandbox: HeldSandbox, onEvent: (event: SandboxEvent) => void): HeldSandbox {
  void sandbox.closed.then(({ why }) => onEvent(SandboxEnded.make({ sandbox: sandbox.id, why })));
  return {
    ...sandbox,
    async spawn(options) {
      const process = await sandbox.spawn(options);
      onEvent(
        CommandStarted.make({ sandbox: sandbox.id, ref: process.ref, pid: process.pid, argv: [...(process.shownArgv ?? options.argv)] }),
      );
      return process;
    },
  };
}
