/** A line of a small diff. */
export interface DiffLine {
  sign: "+" | "-" | " ";
  text: string;
}

const LINES_MAX = 400;

/** Returns the file changes that a tool call requests, as removed and added lines; null for other tools. */
export function diffOfArguments(tool: string, toolArguments: unknown): DiffLine[] | null {
  if (typeof toolArguments !== "object" || toolArguments === null) return null;
  const { old, new: next, content, patch } = toolArguments as Record<string, unknown>;
  if (tool === "edit" && typeof old === "string" && typeof next === "string")
    return [...lines("-", old), ...lines("+", next)].slice(0, LINES_MAX);
  if (tool === "write" && typeof content === "string") return lines("+", content).slice(0, LINES_MAX);
  if (tool === "apply_patch" && typeof patch === "string") return patch.split("\n").slice(0, LINES_MAX).map(patchLine);
  return null;
}

function lines(sign: "+" | "-", text: string): DiffLine[] {
  if (text === "") return [];
  return text
    .replace(/\n$/, "")
    .split("\n")
    .map((line) => ({ sign, text: line }));
}

function patchLine(line: string): DiffLine {
  if (/^(\+\+\+|---)/.test(line)) return { sign: " ", text: line };
  if (line.startsWith("+") || line.startsWith("-")) return { sign: line[0] as "+" | "-", text: line.slice(1) };
  return { sign: " ", text: line };
}

/** Summarizes the arguments of a tool call in one line. */
export function subjectOf(toolArguments: unknown): string {
  if (typeof toolArguments !== "object" || toolArguments === null) return "";
  const { command, path, url, pattern, query, agent, task } = toolArguments as Record<string, unknown>;
  const found = [command, path, url, pattern, query, agent !== undefined && task !== undefined ? `${agent}: ${task}` : undefined].find(
    (value) => typeof value === "string",
  );
  return typeof found === "string" ? found : Object.keys(toolArguments).length === 0 ? "" : JSON.stringify(toolArguments);
}
