import { CommandStarted, SandboxCreated, SandboxEnded, type SandboxEvent } from "../contract/sandbox/sandbox-event.ts";
import type { HeldSandbox } from "../verbs/held-sandbox.ts";
import type { SandboxVerbs } from "../verbs/sandboxes.ts";

/** Wraps a station's sandboxes to report events here, as this process's own runtimes would. */
export function observedSandboxes(sandboxes: SandboxVerbs, onEvent: (event: SandboxEvent) => void): SandboxVerbs {
  return {
    ...sandboxes,
    async create(request, options) {
      const sandbox = await sandboxes.create(request, options);
      const { id, runtime, warnings } = sandbox.info;
      onEvent(SandboxCreated.make({ sandbox: id, runtime, warnings }));
      return withEvents(sandbox, onEvent);
    },
    hold: async (id, options) => withEvents(await sandboxes.hold(id, options), onEvent),
  };
}

function withEvents(sandbox: HeldSandbox, onEvent: (event: SandboxEvent) => void): HeldSandbox {
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
