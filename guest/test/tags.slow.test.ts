import { join } from "node:path";
import { expect, it } from "vitest";
import { tagsHeader } from "./tags-header.ts";

it("tags.h is generated from the host's declarations", async () => {
  await expect(tagsHeader()).toMatchFileSnapshot(join(import.meta.dirname, "../src/wire/tags.h"));
});
