import type { NetworkEvent } from "../../contract/network-event.ts";

type WithoutSandbox<E> = E extends { type: infer Type; data: infer Data } ? { type: Type; data: Omit<Data, "sandbox"> } : never;

/** What happened on a sandbox's network; whoever takes it knows which sandbox, and adds the time. */
export type NetworkEventInput = WithoutSandbox<NetworkEvent>;

/** Never throws and never waits: it is called in the middle of a connection. */
export type Emit = (event: NetworkEventInput) => void;
