import { z } from "zod";
import { TodoList } from "../../contract/run/run.ts";
import type { Tool } from "../tool.ts";

const ITEMS_MAX = 100;
const marks = { pending: "[ ]", in_progress: "[~]", completed: "[x]" } as const;

const WriteArguments = z.strictObject({ todo: TodoList.max(ITEMS_MAX).describe("The whole list, in order.") });

export const todoWriteTool: Tool<z.infer<typeof WriteArguments>> = {
  name: "todo_write",
  description: `Replaces the todo list, at most ${ITEMS_MAX} items; send the whole list each time. It survives when the conversation is shortened. Only one item should be in progress at a time.`,
  parameters: WriteArguments,
  parallel: false,
  repeatable: true,
  files: "untouched",
  subject: () => "todo_write",
  async run(args, context) {
    const ids = new Set(args.todo.map((item) => item.id));
    if (ids.size !== args.todo.length) return { outcome: "error", text: "Two items have the same id." };
    const unknown = args.todo.flatMap((item) => item.blockedBy).filter((id) => !ids.has(id));
    if (unknown.length > 0) return { outcome: "error", text: `blockedBy names items that are not in the list: ${unknown.join(", ")}.` };
    await context.todo.set(args.todo);
    return { outcome: "ok", text: listText(args.todo) };
  },
};

export const todoReadTool: Tool<Record<string, never>> = {
  name: "todo_read",
  description: "Shows the todo list.",
  parameters: z.strictObject({}),
  parallel: true,
  repeatable: true,
  files: "untouched",
  subject: () => "todo_read",
  run: async (_, context) => ({ outcome: "ok", text: listText(context.todo.get()) }),
};

function listText(todo: TodoList): string {
  if (todo.length === 0) return "The list is empty.";
  return todo
    .map(
      (item) => `${marks[item.status]} ${item.id}: ${item.text}${item.blockedBy.length > 0 ? ` (after ${item.blockedBy.join(", ")})` : ""}`,
    )
    .join("\n");
}
