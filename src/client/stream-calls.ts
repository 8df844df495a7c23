import { type CreateHeld, createHeld, holdSandbox, type RemoteHold } from "./held-stream.ts";
import { connectPort, type PortConnection } from "./port-stream.ts";
import { type AttachProcess, attachProcess, openProcess, type RemoteProcess, type StartProcess } from "./process-stream.ts";
import type { Connection } from "./request.ts";
import { type SubscribeOptions, type Subscription, subscribe } from "./subscription.ts";

interface Signal {
  signal?: AbortSignal;
}

interface Resumed extends Signal {
  /** Another silence after which the station is asked for a sign of life, for tests. */
  silenceMs?: number;
}

/** What goes both ways over a connection of its own. */
export interface StreamCalls {
  /** Events of runs and sandboxes as they happen, taken up again by itself where a connection breaks off. */
  subscribe(options?: SubscribeOptions): Promise<Subscription>;
  openProcess(sandbox: string, start: StartProcess, given?: Resumed): Promise<RemoteProcess>;
  attachProcess(sandbox: string, ref: string, attach?: AttachProcess, given?: Resumed): Promise<RemoteProcess>;
  createHeld(request: CreateHeld, given?: Signal & { onNotice?: (text: string) => void }): Promise<RemoteHold>;
  holdSandbox(sandbox: string, given?: Signal): Promise<RemoteHold>;
  connectPort(sandbox: string, port: number, given?: Signal): Promise<PortConnection>;
}

export function streamCalls(to: Connection): StreamCalls {
  return {
    subscribe: (options) => subscribe(to, options),
    openProcess: (sandbox, start, given = {}) => openProcess(to, { sandbox, ...given }, start),
    attachProcess: (sandbox, ref, attach, given = {}) => attachProcess(to, { sandbox, ref, ...given }, attach),
    createHeld: (request, given) => createHeld(to, request, given),
    holdSandbox: (sandbox, given) => holdSandbox(to, sandbox, given),
    connectPort: (sandbox, port, given = {}) => connectPort(to, { sandbox, port, ...given }),
  };
}
