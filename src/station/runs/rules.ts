import { readTextIfThere } from "../../agent/tools/text-file.ts";
import type { AgentDefinition } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";

const MEMORY_CHARACTERS_MAX = 40_000;
const SKILL_CHARACTERS_MAX = 1000;
const SKILLS_MAX = 100;
const FILE_BYTES_MAX = 1024 * 1024;

/**
 * Returns what an agent always sees: the repository's own instructions in full, and the name and purpose of each skill,
 * whose file it can read when needed. Read inside the sandbox. It is part of every model call, so no compaction can
 * lose it.
 */
export async function loadRules(sandbox: Sandbox, definition: AgentDefinition): Promise<string> {
  const [texts, listed] = await Promise.all([
    Promise.all(definition.memory.map((path) => quietly(() => readTextIfThere(sandbox, inWorkspace(path), { bytesMax: FILE_BYTES_MAX })))),
    Promise.all(definition.skills.map((folder) => listSkills(sandbox, folder))),
  ]);
  const parts = definition.memory.flatMap((path, index) => {
    const text = texts[index]?.trim() ?? "";
    return text === "" ? [] : [`Instructions of this repository, from ${path}:\n\n${text.slice(0, MEMORY_CHARACTERS_MAX)}`];
  });
  const skills = listed.flat();
  if (skills.length > 0) {
    const list = skills.map((skill) => `- ${skill.name} (${skill.path}): ${skill.description}`).join("\n");
    parts.push(`Skills. If one fits the task, read its file before you begin:\n${list}`);
  }
  return parts.join("\n\n");
}

async function listSkills(sandbox: Sandbox, folder: string): Promise<{ name: string; path: string; description: string }[]> {
  const root = inWorkspace(folder);
  const listing = await quietly(() => sandbox.list(root, { depth: 2, entriesMax: 10 * SKILLS_MAX }));
  const files = (listing?.entries ?? []).filter((entry) => entry.kind === "file" && entry.name.endsWith("SKILL.md")).slice(0, SKILLS_MAX);
  const skills = files.map(async (entry) => {
    const path = `${root}/${entry.name}`;
    const text = (await quietly(() => readTextIfThere(sandbox, path, { bytesMax: FILE_BYTES_MAX }))) ?? "";
    const field = (key: string) => new RegExp(`^${key}:[ \\t]*(.+)$`, "m").exec(text.split(/^---$/m)[1] ?? "")?.[1]?.trim();
    const fallback = entry.name.split("/").at(-2) ?? "skill";
    return { name: field("name") ?? fallback, path, description: (field("description") ?? "").slice(0, SKILL_CHARACTERS_MAX) };
  });
  return await Promise.all(skills);
}

const inWorkspace = (path: string) => (path.startsWith("/") ? path : `/workspace/${path.replace(/\/$/, "")}`);

/** Returns null if the file does not exist or is a folder: the repository has no such instructions. */
async function quietly<Result>(work: () => Promise<Result>): Promise<Result | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CaissonError && error.code !== "lost" && error.code !== "protocol") return null;
    throw error;
  }
}
