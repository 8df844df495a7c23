import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { callTool, mcpOverHttp, textOf } from "./mcp/testing-mcp.ts";
import { rawSocket } from "./streams/testing-streams.ts";

const ofConfiguration = (owners?: unknown) => ({
  from: { env: "OPERATOR_TOKEN" },
  hosts: ["api.example.test"],
  ...(owners !== undefined && { owners }),
});
const config = {
  secrets: { OPERATORS: ofConfiguration(), ADAS: ofConfiguration(["local", "ada"]), SHARED: ofConfiguration("*") },
};
const { base, server, token, post } = useServer({ config });

/** Every form of a reference that can name a place on the machine. */
const places = ["/DIR", "oci:/DIR", "oci:/DIR:tag", "oci-archive:/DIR", "docker-archive:/DIR:a/b:c", "./DIR", "../DIR", "oci:DIR", "."];

async function imagesOfMachine(): Promise<string[]> {
  const dir = join(base(), "rootfs");
  await mkdir(join(dir, "bin"), { recursive: true });
  return places.map((each) => each.replace("/DIR", dir).replace("DIR", "rootfs"));
}

describe("a token with the scope run", () => {
  test("cannot start a sandbox from any image on the station's machine", async () => {
    const as = await token("run", { owner: "ada" });
    for (const reference of await imagesOfMachine()) {
      const template = { kind: "image", reference };
      const answers = [
        await post("/v1/sandboxes", { spec: { template } }, { as }),
        await post("/v1/runs", { task: "x", model: "scripted:demo", settings: { image: reference } }, { as }),
        await post("/v1/specs", { idea: "x", runs: { settings: { image: reference } } }, { as }),
      ];
      expect([reference, ...answers.map(({ status }) => status)]).toEqual([reference, 403, 403, 403]);
      const socket = rawSocket(server(), "/v1/sandboxes/hold", { as });
      await socket.send({ type: "create", spec: { template } });
      expect([reference, await socket.closed]).toEqual([reference, 4403]);
    }
  });

  test("cannot name an image on the machine over MCP, nor can an admin token", async () => {
    for (const scope of ["run", "admin"] as const) {
      const { client } = await mcpOverHttp(server().status.url, await token(scope, { owner: "ada" }));
      for (const image of await imagesOfMachine()) {
        const answer = await callTool(client, "create_sandbox", { image });
        expect([image, answer.isError, textOf(answer)]).toEqual([image, true, expect.stringContaining("may not access")]);
      }
      await client.close();
    }
  });

  test("can only fetch submodules from https hosts", async () => {
    const as = await token("run", { owner: "ada" });
    const source = { kind: "git", url: "https://git.example.test/evil.git", submodules: true };
    for (const place of ["file:///", "file:///srv", "ssh://git@git.example.test", "git://e.test", "http://e.test", "FILE:///srv"]) {
      const unsafeSource = { ...source, submodulesFrom: ["ok.example.test", place] };
      const answers = [
        await post("/v1/runs", { task: "x", model: "scripted:demo", source: unsafeSource }, { as }),
        await post("/v1/specs", { idea: "x", source: unsafeSource }, { as }),
        await post("/v1/workflows", { definition: { name: "x", steps: [] }, source: unsafeSource }, { as }),
      ];
      expect([place, ...answers.map(({ status }) => status)]).toEqual([place, 403, 403, 403]);
    }
  });

  test("cannot clone from private addresses, the machine or by other transports", async () => {
    const as = await token("run", { owner: "ada" });
    for (const host of [
      "127.0.0.1:1",
      "localhost:1",
      "10.0.0.1",
      "[::1]",
      "169.254.169.254",
      "2130706433",
      "0x7f.1",
      "[::ffff:10.0.0.1]",
    ]) {
      const source = { kind: "git", url: `https://${host}/x.git` };
      const answer = await post("/v1/runs", { task: "x", model: "scripted:demo", source }, { as });
      expect([host, answer.status, await answer.json()]).toMatchObject([host, 403, { code: "denied" }]);
    }
    // This applies even to an owner whose token may name such addresses.
    const admin = await token("admin", { owner: "ada" });
    for (const url of ["ssh://git@git.example.test/x", "file:///srv/x", "http://git.example.test/x"]) {
      const answer = await post("/v1/runs", { task: "x", model: "scripted:demo", source: { kind: "git", url } }, { as: admin });
      expect([url, answer.status]).toEqual([url, 403]);
    }
  });

  test("cannot ship to a repository on the machine, however it is written", async () => {
    const as = await token("run", { owner: "ada" });
    for (const to of ["/srv/x.git", "file:///srv/x.git", "FILE:///srv/x.git", "file:///srv/%2e/x.git", "file://x"]) {
      expect([to, (await post("/v1/ships", { of: "none", to }, { as })).status]).toEqual([to, 403]);
    }
  });

  test("cannot choose a program on the machine as an OCI runtime", async () => {
    const as = await token("run", { owner: "ada" });
    for (const ociRuntime of ["/tmp/crun", "../../tmp/crun", "./crun", "crun/../../x"]) {
      const answer = await post("/v1/runs", { task: "x", model: "scripted:demo", settings: { ociRuntime } }, { as });
      expect([ociRuntime, answer.status]).toEqual([ociRuntime, 403]);
    }
  });
});

describe("a secret from the configuration", () => {
  const name = async (secret: string, owner: string): Promise<string> => {
    const as = await token("run", { owner });
    const request = { task: "x", model: "scripted:demo", settings: { secretNames: [secret] } };
    const [sandbox, run, started] = [
      await post("/v1/sandboxes", { secretNames: [secret], spec: {} }, { as }),
      await post("/v1/runs", request, { as }),
      await post("/v1/runs", { ...request, agent: "named", settings: {} }, { as }),
    ];
    return [sandbox, run, started].map(({ status }) => status).join(" ");
  };

  test("is only for the machine's user unless it names other owners", async () => {
    const agents = join(base(), "config", "agents");
    await mkdir(agents, { recursive: true });
    const outcomes: Record<string, string> = {};
    for (const secret of ["OPERATORS", "ADAS", "SHARED"]) {
      await writeFile(join(agents, "named.prompt"), `---\nname: named\nsandbox:\n  secrets: [${secret}]\n---\nDo it.\n`);
      for (const owner of ["local", "ada", "bob"]) outcomes[`${secret} ${owner}`] = await name(secret, owner);
    }
    const may = "201 201 201";
    const mayNot = "404 404 404";
    expect(outcomes).toEqual({
      "OPERATORS local": may,
      "OPERATORS ada": mayNot,
      "OPERATORS bob": mayNot,
      "ADAS local": may,
      "ADAS ada": may,
      "ADAS bob": mayNot,
      "SHARED local": may,
      "SHARED ada": may,
      "SHARED bob": may,
    });
  });
});
