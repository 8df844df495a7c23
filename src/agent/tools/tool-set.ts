import { CaissonError } from "../../contract/error/error.ts";
import type { Tool } from "../tool.ts";
import { applyPatchTool } from "./apply-patch.ts";
import { bashKillTool, bashOutputTool, bashTool } from "./bash.ts";
import { editTool, writeTool } from "./files.ts";
import { gitTool } from "./git.ts";
import { readTool } from "./read.ts";
import { recallTool } from "./recall.ts";
import { globTool, grepTool } from "./search.ts";
import { todoReadTool, todoWriteTool } from "./todo.ts";
import { requestNetworkTool, webFetchTool } from "./web.ts";

export const builtInTools: readonly Tool[] = [
  bashTool,
  bashOutputTool,
  bashKillTool,
  readTool,
  writeTool,
  editTool,
  applyPatchTool,
  globTool,
  grepTool,
  todoWriteTool,
  todoReadTool,
  gitTool,
  recallTool,
  webFetchTool,
  requestNetworkTool,
] as readonly Tool[];

/** Returns the built-in tools that an agent requests. Throws `invalid` for an unknown name. */
export function selectTools(names: readonly string[] | undefined, options: { agent: string }): Tool[] {
  if (names === undefined) return [...builtInTools];
  return names
    .filter((name) => !name.startsWith("mcp:"))
    .map((name) => {
      const tool = builtInTools.find((each) => each.name === name);
      if (tool) return tool;
      throw new CaissonError("invalid", `the agent ${options.agent} requests an unknown tool ${JSON.stringify(name)}`, {
        hint: `Available tools: ${builtInTools.map((each) => each.name).join(", ")}, and mcp:SERVER.`,
      });
    });
}
