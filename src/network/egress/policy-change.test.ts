import { once } from "node:events";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEgressRig, type EgressRig, readAll, readHead } from "./testing-egress.ts";

let rig: EgressRig;
beforeEach(async () => {
  rig = await createEgressRig();
  for (const name of ["site.test", "other.test"]) rig.names.set(name, ["127.0.0.1"]);
});
afterEach(() => rig[Symbol.asyncDispose]());

describe("a policy change", () => {
  test("keeps a request to an allowed host even if its client used another before", async () => {
    const port = await rig.http((request, response) => (request.url === "/slow" ? response.write("begin") : response.end("done")));
    const rule = (host: string) => ({ host, ports: [port], private: true });
    rig.setPolicy({ mode: "allow", rules: [rule("site.test"), rule("other.test")] });
    const client = await rig.dial();
    client.write(`GET http://site.test:${port}/ HTTP/1.1\r\nHost: site.test:${port}\r\n\r\n`);
    expect(String(await once(client, "data"))).toContain("done");
    client.write(`GET http://other.test:${port}/slow HTTP/1.1\r\nHost: other.test:${port}\r\n\r\n`);
    expect(String(await once(client, "data"))).toContain("200 OK");
    rig.setPolicy({ mode: "allow", rules: [rule("other.test")] });
    rig.egress.enforce();
    expect(rig.eventsOf("network.closed")).toMatchObject([{ host: "site.test" }]);
    rig.setPolicy({ mode: "allow", rules: [] });
    rig.egress.enforce();
    await readAll(client);
    expect(rig.eventsOf("network.closed")).toHaveLength(2);
  });

  test("ends only what it no longer allows", async () => {
    const port = await rig.tcp((socket) => socket.pipe(socket));
    const rule = (host: string) => ({ host, ports: [port], private: true });
    rig.setPolicy({ mode: "allow", rules: [rule("site.test"), rule("other.test")] });
    const [site, other] = [(await rig.tunnel(`site.test:${port}`)).socket, (await rig.tunnel(`other.test:${port}`)).socket];
    for (const socket of [site, other]) {
      socket.write("\0");
      await once(socket.resume(), "data");
    }
    rig.setPolicy({ mode: "allow", rules: [rule("other.test")] });
    rig.egress.enforce();
    await readAll(site);
    other.write("\0");
    await once(other, "data");
    // A tunnel ends if its requests, which we did not see, now have to be inspected.
    rig.setPolicy({ mode: "allow", rules: [{ ...rule("other.test"), methods: ["GET"] }] });
    rig.egress.enforce();
    await readAll(other);
    expect(rig.egress.stats().connections).toBeLessThanOrEqual(2);
  });

  test("ends downloads in plain HTTP and over inspected TLS", async () => {
    const listener = (_request: unknown, response: { write(text: string): void }) => response.write("begin");
    const [plain, secure] = [await rig.http(listener), await rig.https(listener)];
    const rules = [
      { host: "site.test", ports: [plain], private: true },
      { host: "site.test", ports: [secure], private: true, methods: ["GET"] },
    ];
    rig.setPolicy({ mode: "allow", rules });
    const client = await rig.dial();
    client.write(`GET http://site.test:${plain}/ HTTP/1.1\r\nHost: site.test:${plain}\r\n\r\n`);
    const tls = await rig.secure((await rig.tunnel(`site.test:${secure}`)).socket, "site.test");
    tls.write(`GET / HTTP/1.1\r\nHost: site.test:${secure}\r\n\r\n`);
    await Promise.all([readHead(client), readHead(tls)]);
    rig.setPolicy({ mode: "allow", rules: rules.map((rule) => ({ ...rule, paths: ["/elsewhere"] })) });
    rig.egress.enforce();
    await Promise.all([readAll(client), readAll(tls)]);
    expect(rig.eventsOf("network.closed")).toHaveLength(2);
  });
});
