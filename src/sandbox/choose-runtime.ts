import type { RuntimeChoice, TaskNeeds } from "../contract/machine/machine-verbs.ts";
import type { Capabilities } from "../contract/sandbox/sandbox.ts";

export interface AvailableRuntime {
  name: string;
  capabilities: Capabilities;
  startMs: number | null;
}

/** The program whose presence proves a language's toolchain. */
const languagePrograms: ReadonlyMap<string, string> = new Map(
  Object.entries({
    c: "cc",
    go: "go",
    java: "java",
    javascript: "node",
    node: "node",
    perl: "perl",
    php: "php",
    python: "python3",
    ruby: "ruby",
    rust: "cargo",
    shell: "sh",
    typescript: "node",
  }),
);

/**
 * Chooses a runtime for a task among those that a probe proved. Returns null if no runtime fits. Never returns a
 * runtime without isolation.
 */
export function chooseRuntime(
  needs: TaskNeeds,
  machine: { available: readonly AvailableRuntime[]; hasProgram: (program: string) => boolean },
): RuntimeChoice | null {
  const reasons: string[] = [];
  const program =
    needs.language === undefined ? undefined : (languagePrograms.get(needs.language.toLowerCase()) ?? needs.language.toLowerCase());
  const template = needs.image === true || (program !== undefined && !machine.hasProgram(program)) ? "image" : "host";
  if (program !== undefined) {
    reasons.push(
      template === "host"
        ? `This machine has ${program}; the host template makes it available inside.`
        : `This machine has no ${program}: pass --image.`,
    );
  }
  const refusal = ({ name, capabilities }: AvailableRuntime): string | null => {
    if (capabilities.isolation === 0) return `${name} isolates nothing.`;
    if ((needs.sensitive === true || needs.offline === true) && !capabilities.sharesHostFilesystem)
      return `${name} does not run on this machine.`;
    if (!capabilities.templates.includes(template))
      return `${name} cannot start from ${template === "host" ? "the host's toolchain" : "an image"}.`;
    return null;
  };
  const fitting: AvailableRuntime[] = [];
  for (const runtime of machine.available) {
    const refused = refusal(runtime);
    if (refused === null) fitting.push(runtime);
    else reasons.push(refused);
  }
  const speed = (runtime: AvailableRuntime) => runtime.startMs ?? Number.POSITIVE_INFINITY;
  const best = fitting.toSorted(
    (left, right) => right.capabilities.isolation - left.capabilities.isolation || speed(left) - speed(right),
  )[0];
  if (best === undefined) return null;
  if (fitting.length > 1) reasons.push(`${best.name} has the strongest wall of the runtimes that fit, and the fastest start among equals.`);
  if (needs.preview === true) reasons.push("Previews work with every runtime: they reach the sandbox's port through its guest.");
  return { runtime: best.name, template, reasons };
}
