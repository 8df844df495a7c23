import { z } from "zod";
import { showBytes } from "../../lib/quantity.ts";

const Contents = z.object({ uri: z.string(), mimeType: z.string().optional(), text: z.string().optional(), blob: z.string().optional() });
const Part = z.discriminatedUnion("type", [
  z.object({ type: z.literal("text"), text: z.string() }),
  z.object({ type: z.enum(["image", "audio"]), data: z.string(), mimeType: z.string() }),
  z.object({ type: z.literal("resource"), resource: Contents }),
  z.object({
    type: z.literal("resource_link"),
    uri: z.string(),
    name: z.string().optional(),
    description: z.string().optional(),
    mimeType: z.string().optional(),
  }),
]);

/**
 * Returns the text of an MCP tool's result for the model: all text, the targets of links, and the kind and size of
 * anything that is not text.
 */
export function mcpResultText(result: { [field: string]: unknown }): string {
  const parts = Array.isArray(result.content) ? result.content : [];
  if (parts.length > 0) return parts.map(partText).join("\n");
  return result.structuredContent === undefined ? "(nothing)" : JSON.stringify(result.structuredContent);
}

function partText(untrusted: unknown): string {
  const parsed = Part.safeParse(untrusted);
  if (!parsed.success) return `[unknown content: ${JSON.stringify(untrusted)}]`;
  const part = parsed.data;
  switch (part.type) {
    case "text":
      return part.text;
    case "image":
    case "audio":
      return `[${part.type} ${part.mimeType}, ${sizeOf(part.data)}; not shown]`;
    case "resource":
      return resourceText(part.resource);
    case "resource_link": {
      const about = [part.name, part.mimeType, part.description].filter((text) => text !== undefined && text !== "");
      return `[resource link ${part.uri}${about.length === 0 ? "" : ` (${about.join("; ")})`}]`;
    }
  }
}

function resourceText({ uri, mimeType, text, blob }: z.infer<typeof Contents>): string {
  const name = `resource ${uri}${mimeType === undefined ? "" : ` ${mimeType}`}`;
  if (text !== undefined) return `[${name}]\n${text}`;
  return blob === undefined ? `[${name}]` : `[${name}, ${sizeOf(blob)}; not shown]`;
}

const sizeOf = (base64: string) => showBytes(Buffer.byteLength(base64, "base64"));
