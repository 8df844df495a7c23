import { expect, test } from "vitest";
import { createKeptPreviews } from "./kept-previews.ts";
import type { OpenedPort } from "./verbs.ts";

const open = async (sandbox: string) =>
  ({ view: { sandbox, port: 80 }, closed: new Promise(() => {}), close: async () => {} }) as unknown as OpenedPort<never>;

test("one owner's previews leave some for the others, however many are opened at once", async () => {
  const { keepPreview, closePreview } = createKeptPreviews(open, async (sandbox) => sandbox);
  const opened = await Promise.allSettled(Array.from({ length: 300 }, () => keepPreview("ada", { port: 80 })));
  const kept = opened.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  expect(kept).toHaveLength(64);
  expect(opened.at(-1)).toMatchObject({ reason: { code: "busy", message: expect.stringContaining("ada") } });
  await keepPreview("bob", { port: 80 });
  await closePreview(kept[0]?.id ?? "");
  await keepPreview("ada", { port: 80 });
});
