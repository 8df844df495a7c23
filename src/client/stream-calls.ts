import { type CreateHeld, createHeld, holdSandbox, type RemoteHold } from "./held-stream.ts";
import { connectPort, type PortConnection } from "./port-stream.ts";
import { type AttachProcess, attachProcess, openProcess, type RemoteProcess, type StartProcess } from "./process-stream.ts";
import type { Connection } from "./request.ts";
import { type SubscribeOptions, type Subscription, subscribe } from "./subscription.ts";

interface Signal {
  signal?: AbortSignal;
}

interface Resumed extends Signal {
  /** Overrides the silence before a health check, for tests. */
  silenceMs?: number;
}

/** Two-way streams, each over a separate connection. */
export interface StreamCalls {
  /** Subscribes to live events of runs and sandboxes. Reconnects and resumes automatically. */
  subscribe(options?: SubscribeOptions): Promise<Subscription>;
  openProcess(sandbox: string, start: StartProcess, options?: Resumed): Promise<RemoteProcess>;
  attachProcess(sandbox: string, ref: string, attach?: AttachProcess, options?: Resumed): Promise<RemoteProcess>;
  createHeld(request: CreateHeld, options?: Signal & { onNotice?: (text: string) => void }): Promise<RemoteHold>;
  holdSandbox(sandbox: string, options?: Signal): Promise<RemoteHold>;
  connectPort(sandbox: string, port: number, options?: Signal): Promise<PortConnection>;
}

export function streamCalls(to: Connection): StreamCalls {
  return {
    subscribe: (options) => subscribe(to, options),
    openProcess: (sandbox, start, options = {}) => openProcess(to, { sandbox, ...options }, start),
    attachProcess: (sandbox, ref, attach, options = {}) => attachProcess(to, { sandbox, ref, ...options }, attach),
    createHeld: (request, options) => createHeld(to, request, options),
    holdSandbox: (sandbox, options) => holdSandbox(to, sandbox, options),
    connectPort: (sandbox, port, options = {}) => connectPort(to, { sandbox, port, ...options }),
  };
}
