import { createServer, type Server, type Socket } from "node:net";
import { type DbusMessage, decodeMessage } from "../../src/runtimes/oci/systemd/dbus-message.ts";
import { type DbusValue, marshal } from "../../src/runtimes/oci/systemd/dbus-value.ts";

export interface BusReply {
  kind: "return" | "error" | "signal";
  signature: string;
  body: DbusValue[];
  errorName?: string;
  member?: string;
}

const JOB = "/org/freedesktop/systemd1/job/7";
export const jobStarted: BusReply = { kind: "return", signature: "o", body: [JOB] };
export const nothing: BusReply = { kind: "return", signature: "", body: [] };
export function jobRemoved(unit: string, result: string, job = JOB): BusReply {
  return { kind: "signal", member: "JobRemoved", signature: "uoss", body: [7, job, unit, result] };
}

/** A bus that greets every client and sends configured replies. */
export class ScriptedBus {
  readonly greetings: string[] = [];
  readonly calls: DbusMessage[] = [];
  greeting = "OK 1234deadbeef\r\n";
  answers: (call: DbusMessage) => BusReply[] = (call) =>
    call.member === "StartTransientUnit" ? [jobStarted, jobRemoved(String(call.body[0]), "done")] : [nothing];
  private readonly socketPath: string;
  private readonly sockets = new Set<Socket>();
  private readonly server: Server = createServer((socket) => this.serve(socket));

  constructor(socketPath: string) {
    this.socketPath = socketPath;
  }

  listen(): Promise<void> {
    return new Promise((resolve) => this.server.listen(this.socketPath, resolve));
  }
  close(): Promise<unknown> {
    for (const socket of this.sockets) socket.destroy();
    return new Promise((resolve) => this.server.close(resolve));
  }

  private serve(socket: Socket): void {
    this.sockets.add(socket);
    let bytes = Buffer.alloc(0);
    let hasBegun = false;
    socket.on("error", () => {});
    socket.on("data", (chunk) => {
      bytes = Buffer.concat([bytes, chunk]);
      if (!hasBegun && bytes.includes("AUTH") && bytes.includes("\r\n")) {
        this.greetings.push(bytes.toString("latin1"));
        socket.write(this.greeting);
        bytes = Buffer.alloc(0);
        hasBegun = true;
        return;
      }
      if (bytes.toString("latin1", 0, 7) === "BEGIN\r\n") bytes = bytes.subarray(7);
      for (let next = decodeMessage(bytes); next !== null; next = decodeMessage(bytes)) {
        bytes = bytes.subarray(next.length);
        this.calls.push(next.message);
        for (const reply of this.answers(next.message)) socket.write(encode(reply, next.message.serial));
      }
    });
  }
}

function encode(reply: BusReply, serial: number): Buffer {
  const body = marshal(reply.signature, reply.body);
  const fields: DbusValue[] = [
    [5, { signature: "u", value: serial }],
    [8, { signature: "g", value: reply.signature }],
    ...(reply.errorName === undefined ? [] : [[4, { signature: "s", value: reply.errorName }]]),
    ...(reply.member === undefined ? [] : [[3, { signature: "s", value: reply.member }]]),
  ];
  const header = marshal("yyyyuua(yv)", [0x6c, { return: 2, error: 3, signal: 4 }[reply.kind], 0, 1, body.length, 1, fields]);
  return Buffer.concat([header, Buffer.alloc((8 - (header.length % 8)) % 8), body]);
}
