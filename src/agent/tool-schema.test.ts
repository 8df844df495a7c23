import { expect, test } from "vitest";
import { z } from "zod";
import { toolSchema } from "./tool-schema.ts";

const parameters = z.strictObject({ path: z.string() });

test("shows a model the parameters as JSON schema, or the tool's own schema", () => {
  expect(toolSchema({ name: "read", description: "Reads.", parameters })).toEqual({
    name: "read",
    description: "Reads.",
    parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"], additionalProperties: false },
  });
  const jsonSchema = { type: "object", title: "given" };
  expect(toolSchema({ name: "given", description: "", parameters, jsonSchema }).parameters).toBe(jsonSchema);
});

test("shares one schema of a tool among all runs of a process", () => {
  const tool = { name: "read", description: "", parameters };
  expect(toolSchema(tool).parameters).toBe(toolSchema({ ...tool, description: "With other limits." }).parameters);
});
