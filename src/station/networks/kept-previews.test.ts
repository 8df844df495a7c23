import { expect, test } from "vitest";
import type { OpenedPort } from "../../verbs/networks.ts";
import { createKeptPreviews } from "./kept-previews.ts";

const open = async (sandbox: string) =>
  ({ view: { sandbox, port: 80 }, closed: new Promise(() => {}), close: async () => {} }) as unknown as OpenedPort<never>;

test("limits the previews of one owner, even if many open at once", async () => {
  const { keepPreview, closePreview } = createKeptPreviews(open, async (sandbox) => sandbox);
  const opened = await Promise.allSettled(Array.from({ length: 300 }, () => keepPreview("ada", { port: 80 })));
  const previews = opened.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  expect(previews).toHaveLength(64);
  expect(opened.at(-1)).toMatchObject({ reason: { code: "busy", message: expect.stringContaining("ada") } });
  await keepPreview("bob", { port: 80 });
  await closePreview(previews[0]?.id ?? "");
  await keepPreview("ada", { port: 80 });
});
