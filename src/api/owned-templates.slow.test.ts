import { expect, test } from "vitest";
import type { Client } from "../client/connect.ts";
import type { TemplateView } from "../contract/template/template.ts";
import type { BuildTemplate } from "../contract/template/template-verbs.ts";
import { refused, useOwners } from "./testing-owners.ts";

/** Two owners, neither of whom may see the other's templates or use what their builds stored. */
const { twoOwners } = useOwners();

const dockerfile = "FROM host\nENV WHO=ada\nCOPY <<FILE /workspace/file\nada's\nFILE\n";

async function build(client: Client, request: BuildTemplate): Promise<{ template: TemplateView; states: string[] }> {
  const states: string[] = [];
  for await (const event of await client.templates.build(request)) {
    if ("step" in event) states.push(event.step.state);
    if ("template" in event) return { template: event.template, states };
  }
  throw new Error("the build ended without a template");
}

test("a template can only be found, used and removed by its owner", async () => {
  const { ada, bob, admin } = await twoOwners();
  const { template } = await build(ada, { name: "tool", dockerfile });
  expect(await bob.templates.list()).toEqual([]);
  const words = ["tool", template.id, template.id.slice(0, 8)];
  for (const word of words) {
    await refused([
      bob.templates.get(word),
      bob.templates.tag(word, { name: "mine" }),
      bob.templates.remove(word),
      bob.templates.export(word),
      bob.sandboxes.create({ spec: {}, template: word }),
      bob.runs.start({ task: "x", model: "openai/none", settings: { template: word } }),
    ]);
    expect((await ada.templates.get(word)).id).toBe(template.id);
  }
  await refused([bob.sandboxes.create({ spec: { template: { kind: "snapshot", id: template.snapshot } } })]);
  expect((await admin.templates.list()).map(({ owner }) => owner)).toEqual(["ada"]);
  const { template: own } = await build(bob, { name: "tool", dockerfile });
  await bob.templates.remove("tool");
  expect((await ada.templates.get("tool")).id).toBe(template.id);
  await refused([bob.templates.get(own.id)]);
});

test("a step is only cached for its owner", async () => {
  const { ada, bob } = await twoOwners();
  expect((await build(ada, { dockerfile })).states).toEqual(["started", "ended"]);
  expect((await build(ada, { dockerfile })).states).toEqual(["cached"]);
  expect((await build(bob, { dockerfile })).states).toEqual(["started", "ended"]);
});

test("a token without admin names no place of the station's machine", async () => {
  const { ada } = await twoOwners();
  const denied = async (request: BuildTemplate) =>
    expect(build(ada, request), JSON.stringify(request)).rejects.toMatchObject({ code: expect.stringMatching(/denied|unauthenticated/) });
  await denied({ context: "/etc" });
  await denied({ dockerfile: "FROM base", images: { base: "oci:/srv/layout" } });
  await denied({ dockerfile: "FROM host", runtime: "host" });
  await denied({ dockerfile: "FROM oci:/srv/layout" });
  await denied({ dockerfile: "FROM host\nCOPY --from=docker-archive:/srv/x /a /b" });
  const { snapshots } = await ada.sandboxes.snapshots();
  expect(snapshots).toEqual([]);
});
