import { expect, test } from "vitest";
import { z } from "zod";
import { toolSchema } from "./tool-schema.ts";

const parameters = z.strictObject({ path: z.string() });

test("a model is shown the parameters as JSON schema, or what the tool has instead", () => {
  expect(toolSchema({ name: "read", description: "Reads.", parameters })).toEqual({
    name: "read",
    description: "Reads.",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"], additionalProperties: false },
  });
  const jsonSchema = { type: "object", title: "given" };
  expect(toolSchema({ name: "given", description: "", parameters, jsonSchema }).parameters).toBe(jsonSchema);
});

test("every run of a process shares one schema of a tool", () => {
  const tool = { name: "read", description: "", parameters };
  expect(toolSchema(tool).parameters).toBe(toolSchema({ ...tool, description: "With other limits." }).parameters);
});
