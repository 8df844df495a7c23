import { describe, expect, test } from "vitest";
import type { CaissonError } from "../contract/error/error.ts";
import type { TokenView } from "../contract/token/token-verbs.ts";
import { checkOrigin, createGate, isLoopback, type StationNames } from "./gate.ts";

const view: TokenView = {
  id: "tok_aaaaaaaaaaaa",
  name: "t",
  scope: "run",
  owner: "local",
  createdAt: "2030-01-01T00:00:00.000Z",
  expiresAt: null,
};

function gateAt() {
  let now = 0;
  const gate = createGate({
    authenticateSandbox: () => null,
    findCode: () => null,
    now: () => now,
    authenticate: async (token) => (token === "right" || token === "other" ? view : null),
  });
  const admit = (token: string | null, address = "127.0.0.1") =>
    gate.admit({ authorization: token === null ? null : `Bearer ${token}`, address }).then(
      () => "in",
      (error) => error.code,
    );
  return { admit, pass: (ms: number) => (now += ms) };
}

describe("the gate", () => {
  test("accepts valid tokens only", async () => {
    const { admit } = gateAt();
    expect(await admit("right")).toBe("in");
    expect(await admit("wrong")).toBe("unauthenticated");
    expect(await admit(null)).toBe("unauthenticated");
    expect(await admit("with space")).toBe("unauthenticated");
  });

  test("answers busy after too many invalid tokens from an address, for a while", async () => {
    const { admit, pass } = gateAt();
    for (let each = 0; each < 20; each++) expect(await admit(`wrong${each}`)).toBe("unauthenticated");
    expect(await admit("wrong")).toBe("busy");
    expect(await admit("wrong", "127.0.0.2")).toBe("unauthenticated");
    pass(60_000);
    expect(await admit("wrong")).toBe("unauthenticated");
  });

  test("accepts a valid token despite many invalid ones from the same address", async () => {
    const { admit } = gateAt();
    for (let each = 0; each < 10_000; each++) await admit(`wrong${each}`);
    expect(await admit("right")).toBe("in");
    expect(await admit("other")).toBe("in");
  });

  test("does not count requests without a token as attempts", async () => {
    const { admit } = gateAt();
    for (let each = 0; each < 100; each++) await admit(null);
    expect(await admit("other")).toBe("in");
  });
});

describe("the request rate", () => {
  test("is limited for each token and address, and recovers with time", async () => {
    let time = 0;
    const view = (id: string) => ({ id, name: id, scope: "run", owner: "local", createdAt: "", expiresAt: null }) as TokenView;
    const gate = createGate({
      authenticateSandbox: () => null,
      findCode: () => null,
      authenticate: async (secret) => (secret === "wrong" ? null : view(secret)),
      now: () => time,
      requestsPerMinute: 60,
    });
    const ask = async (secret: string, address: string) => {
      try {
        await gate.admit({ authorization: `Bearer ${secret}`, address });
        return "in";
      } catch (error) {
        return (error as CaissonError).details?.retryAfterSeconds;
      }
    };
    for (let n = 0; n < 60; n++) expect(await ask("a", `10.0.0.${n}`)).toBe("in");
    expect(await ask("a", "10.0.1.1")).toBe(1);
    expect(await ask("b", "10.0.1.1")).toBe("in");
    for (let n = 0; n < 60; n++) await ask("wrong", "10.0.0.99");
    expect(await ask("wrong", "10.0.0.99")).toBe(1);
    expect(await ask("d", "10.0.0.99")).toBe("in");
    time += 1000;
    expect(await ask("a", "10.0.2.1")).toBe("in");
    expect(await ask("a", "10.0.2.1")).toBe(1);
  });
});

describe("checkOrigin", () => {
  const here: StationNames = { publicUrl: null, scheme: "http" };
  const check = (headers: Record<string, string>, via: "socket" | "port" = "port", names = here) => {
    try {
      checkOrigin({ headers: new Headers(headers), via, names });
      return "in";
    } catch (error) {
      return (error as { code: string }).code;
    }
  };
  test.each(["127.0.0.1:7433", "localhost:7433", "LOCALHOST", "[::1]:7433", "127.0.0.1", "127.1.2.3:80"])(
    "accepts the host %s as this machine",
    (host) => {
      expect(check({ host })).toBe("in");
    },
  );
  test.each(["evil.test", "evil.test:7433", "localhost.evil.test", "127.0.0.1.evil.test", "10.0.0.1", "", "[::2]:1", "127.evil.test"])(
    "rejects the host %j",
    (host) => {
      expect(check({ host })).toBe("denied");
    },
  );
  test("rejects pages of other origins, even on the socket", () => {
    expect(check({ host: "127.0.0.1:7433", origin: "http://127.0.0.1:7433" })).toBe("in");
    for (const origin of ["http://evil.test", "null", "https://127.0.0.1:7433", "http://127.0.0.1:80"]) {
      expect(check({ host: "127.0.0.1:7433", origin })).toBe("denied");
      expect(check({ host: "station", origin }, "socket")).toBe("denied");
    }
    expect(check({ host: "station" }, "socket")).toBe("in");
  });
  test("accepts only the public name of a station that other machines can reach", () => {
    const names: StationNames = { publicUrl: "https://caisson.test", scheme: "http" };
    expect(check({ host: "Caisson.test", origin: "https://caisson.test" }, "port", names)).toBe("in");
    // Behind a proxy that replaces the host name with its own.
    expect(check({ host: "127.0.0.1:7433", origin: "https://caisson.test" }, "port", names)).toBe("in");
    expect(check({ host: "evil.test" }, "port", names)).toBe("denied");
    expect(check({ host: "caisson.test", origin: "https://evil.test" }, "port", names)).toBe("denied");
    expect(check({ host: "127.0.0.1:1", origin: "https://127.0.0.1:1" }, "port", { publicUrl: null, scheme: "https" })).toBe("in");
  });
  test("recognizes loopback addresses", () => {
    for (const address of ["127.0.0.1", "127.255.0.1", "::1"]) expect(isLoopback(address), address).toBe(true);
    for (const address of ["0.0.0.0", "::", "10.0.0.1", "127.x", "localhost", "1127.0.0.1", ""])
      expect(isLoopback(address), address).toBe(false);
  });
});
