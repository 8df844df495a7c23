import { expect } from "vitest";
import type { Finished, MachineCaisson, RunOptions } from "./run-in.ts";

/** A kept sandbox on the rig's machine, as its user sees it. */
export interface Inside {
  readonly id: string;
  run(argv: readonly string[], options?: RunOptions & { user?: string }): Promise<Finished>;
  sh(script: string, options?: RunOptions): Promise<Finished>;
  /** Returns the script's output. Fails the test if the script fails. */
  ok(script: string): Promise<string>;
  /** Sends bytes to a port of the sandbox's loopback and returns the response, one item after the other. */
  exchange(items: readonly Exchange[]): Promise<Exchanged[]>;
  remove(): Promise<void>;
}

export interface Exchange {
  /** The proxy's port by default. */
  port?: number;
  send: string | Buffer;
  /** Ends its own side after sending. */
  shut?: boolean;
  /** Stops reading after this text. */
  until?: string;
}

export interface Exchanged {
  text: string;
  /**
   * Whether the other side closed or reset the connection, sent the expected text, or was still silent at the timeout.
   */
  end: "closed" | "reset" | "enough" | "silent";
}

export const PROXY = 19_080;

/** A client for raw sockets, which no HTTP library interprets. */
const client = `
import base64, json, socket, sys
told = []
for item in json.load(sys.stdin):
    got, end = b"", "silent"
    try:
        with socket.create_connection(("127.0.0.1", item["port"]), 30) as s:
            s.sendall(base64.b64decode(item["send"]))
            if item["shut"]: s.shutdown(socket.SHUT_WR)
            while True:
                piece = s.recv(65536)
                if not piece:
                    end = "closed"
                    break
                got += piece
                if item["until"] and item["until"].encode("latin-1") in got:
                    end = "enough"
                    break
    except socket.timeout: pass
    except OSError: end = "reset"
    told.append({"text": got.decode("latin-1"), "end": end})
print(json.dumps(told))
`;

export async function createInside(machine: MachineCaisson, argv: readonly string[], options?: RunOptions): Promise<Inside> {
  const result = await machine.run(["sandbox", "create", "--no-workspace", ...argv], options);
  expect(result.code, result.stderr).toBe(0);
  return insideOf(machine, result.stdout.trim(), options?.env);
}

/** `env` is the user's environment for every command: secrets may come from it. */
export function insideOf(machine: MachineCaisson, id: string, env: Record<string, string> = {}): Inside {
  const inside: Inside = {
    id,
    run: (argv, { user, ...options } = {}) =>
      machine.run(["exec", "--sandbox", id, ...(user === undefined ? [] : ["--user", user]), "--", ...argv], {
        ...options,
        env: { ...env, ...options.env },
      }),
    sh: (script, options) => inside.run(["sh", "-c", script], options),
    async ok(script) {
      const { code, stdout, stderr } = await inside.sh(script);
      expect(code, `${script}\n${stdout}${stderr}`).toBe(0);
      return stdout;
    },
    async exchange(items) {
      const input = items.map(({ port = PROXY, send, shut = false, until = "" }) => ({
        port,
        send: Buffer.from(send as string, typeof send === "string" ? "latin1" : undefined).toString("base64"),
        shut,
        until,
      }));
      const { code, stdout, stderr } = await inside.run(["python3", "-c", client], { input: JSON.stringify(input) });
      expect(code, stderr).toBe(0);
      return JSON.parse(stdout) as Exchanged[];
    },
    async remove() {
      const removed = await machine.run(["sandbox", "rm", id, "--yes"]);
      expect(removed.code, removed.stderr).toBe(0);
    },
  };
  return inside;
}

/** The three protocols of the proxy's port, as bytes. A target is the host part of a URL, without a port. */
export const ways = {
  request: (target: string, path = "/"): Exchange => ({
    send: `GET http://${target}${path} HTTP/1.1\r\nHost: ${target}\r\nConnection: close\r\n\r\n`,
  }),
  tunnel: (target: string, port = 443): Exchange => ({
    send: `CONNECT ${target}:${port} HTTP/1.1\r\nHost: ${target}:${port}\r\n\r\n`,
    until: "\r\n\r\n",
  }),
  socks(target: string, port = 80): Exchange {
    const name = target.replace(/^\[(.*)\]$/, "$1");
    const to = [...Buffer.from(name), port >> 8, port & 255];
    // Reads the method and the whole reply, whose second byte is the result.
    return { send: Buffer.from([5, 1, 0, 5, 1, 0, 3, Buffer.byteLength(name), ...to]), until: "\x05\x00\x05\x00" };
  },
};
/** Returns the result of a SOCKS exchange: 0 is success, 2 means forbidden by rules. */
export const socksReply = ({ text }: Exchanged): number | undefined => (text.startsWith("\x05\x00\x05") ? text.charCodeAt(3) : undefined);
