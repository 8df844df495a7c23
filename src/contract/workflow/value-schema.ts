import { z } from "zod";
import { JsonValue } from "../json-value.ts";

/** The accepted values: a small subset of JSON Schema. */
export interface ValueSchema {
  type?: "object" | "array" | "string" | "number" | "integer" | "boolean" | "null" | undefined;
  description?: string | undefined;
  properties?: Record<string, ValueSchema> | undefined;
  required?: string[] | undefined;
  additionalProperties?: boolean | undefined;
  items?: ValueSchema | undefined;
  enum?: z.core.util.JSONType[] | undefined;
  minimum?: number | undefined;
  maximum?: number | undefined;
  maxLength?: number | undefined;
  maxItems?: number | undefined;
  default?: z.core.util.JSONType | undefined;
}
export const ValueSchema: z.ZodType<ValueSchema> = z.lazy(() =>
  z.strictObject({
    type: z.enum(["object", "array", "string", "number", "integer", "boolean", "null"]).optional(),
    description: z.string().max(2000).optional(),
    properties: z.record(z.string().max(100), ValueSchema).optional(),
    required: z.array(z.string().max(100)).max(100).optional(),
    additionalProperties: z.boolean().optional(),
    items: ValueSchema.optional(),
    enum: z.array(JsonValue).max(1000).optional(),
    minimum: z.number().optional(),
    maximum: z.number().optional(),
    maxLength: z.int().nonnegative().optional(),
    maxItems: z.int().nonnegative().optional(),
    default: JsonValue.optional(),
  }),
);
