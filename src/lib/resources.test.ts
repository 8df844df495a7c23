import { expect, test } from "vitest";
import { Resources } from "./resources.ts";

test("ends resources once, in reverse order, even if one fails", async () => {
  const ended: string[] = [];
  const resource = (name: string, failure?: Error) => ({
    async [Symbol.asyncDispose]() {
      ended.push(name);
      if (failure) throw failure;
    },
  });
  const resources = new Resources();
  resources.use(resource("first"));
  resources.use(resource("second", new Error("of the second")));
  resources.use(resource("third", new Error("of the third")));
  await expect(resources[Symbol.asyncDispose]()).rejects.toThrow("of the third");
  await resources[Symbol.asyncDispose]();
  expect(ended).toEqual(["third", "second", "first"]);
});
