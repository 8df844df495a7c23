import { join } from "node:path";
import { expect, it } from "vitest";
import { tagsHeader } from "./tags-header.ts";

it("the guest's names of fields are made from the host's", async () => {
  await expect(tagsHeader()).toMatchFileSnapshot(join(import.meta.dirname, "../src/wire/tags.h"));
});
