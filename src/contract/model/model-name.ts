/** Providers of models. `compatible` is any server that speaks OpenAI's chat protocol. */
export const modelProviders = ["anthropic", "openai", "google", "compatible"] as const;
export type ModelProvider = (typeof modelProviders)[number];

export type ModelName =
  | { kind: "provider"; provider: ModelProvider; id: string }
  /** The script that ships with the program. */
  | { kind: "demo" }
  /** A file on the machine that replaces a model. */
  | { kind: "script"; file: string };

/** Parses a model name: `PROVIDER/MODEL` or `scripted:FILE`. Returns null for any other form. */
export function parseModelName(name: string): ModelName | null {
  if (name === "scripted:demo") return { kind: "demo" };
  if (name.startsWith("scripted:")) return { kind: "script", file: name.slice("scripted:".length) };
  const slash = name.indexOf("/");
  const provider = modelProviders.find((each) => each === name.slice(0, Math.max(slash, 0)));
  const id = name.slice(slash + 1);
  return provider === undefined || id === "" ? null : { kind: "provider", provider, id };
}
