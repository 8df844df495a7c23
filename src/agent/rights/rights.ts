import { type AgentDefinition, HarnessSettings, type SubAgentDefinition } from "../../contract/agent.ts";
import { defaultLimits } from "../../contract/default-limits.ts";
import type { GatewaySpec, NetworkPolicy, SecretSpec } from "../../contract/network.ts";
import { showRule } from "../../contract/network-text.ts";
import type { LimitsRequest } from "../../contract/sandbox.ts";
import { visible, visibleWords } from "../../lib/visible.ts";
import { isMachinePath } from "./machine-path.ts";
import { wideningRules } from "./permission-rights.ts";

/** One thing that an agent's file asks for beyond what any file may do. */
export interface Right {
  /** The setting of the agent's definition, such as `sandbox.network`. */
  field: string;
  /** In one line of printable ASCII, whatever the file had. */
  text: string;
  /** Why nobody can grant it to a file. */
  never?: string;
}

/** What an agent without any settings has on this machine: asking for that much, or for less, is no right. */
export interface UsualBounds {
  limits: LimitsRequest;
}

type Asked = Pick<Right, "text" | "never"> & { field?: string };
type Judge<Value> = (value: Value, usual: UsualBounds) => readonly Asked[];
/** Every setting has a judge: one that is new does not compile before it has been thought about. */
type Judges<Settings> = { readonly [Key in keyof Required<Settings>]: Judge<NonNullable<Settings[Key]>> };

/** Everything a definition asks for that widens what an agent may do. Nothing: it may be obeyed, whoever wrote it. */
export function rightsOf(definition: AgentDefinition, usual: UsualBounds): Right[] {
  return settings<AgentDefinition>({ ...ofOneAgent, subAgents: ofSubAgents })(definition, usual).map(({ field = "", ...right }) => ({
    field,
    ...right,
  }));
}

/** Words for the model, the choice among built-in tools, and bounds of which none is wider than without it. */
const narrows: Judge<unknown> = () => [];

const harness = HarnessSettings.parse({});

const ofOneAgent: Judges<SubAgentDefinition> = {
  name: narrows,
  description: narrows,
  model: (model) => [{ text: `ask the model ${visible(model)}, with your key and at your cost` }],
  tools: narrows,
  // Each is a file of its own, which is judged when it is loaded.
  agents: narrows,
  system: narrows,
  temperature: narrows,
  // The provider's own maximum holds without it.
  outputTokensMax: narrows,
  harness: settings<HarnessSettings>({
    maxSteps: above("steps", () => harness.maxSteps),
    timeoutMs: above("milliseconds of work", () => harness.timeoutMs),
    onBudget: narrows,
    onAsk: narrows,
    doomLoop: settings<HarnessSettings["doomLoop"]>({
      threshold: above("repetitions before it counts as a loop", () => harness.doomLoop.threshold),
      action: (action) => (action === "summarize" ? [{ text: "go on after a loop without asking" }] : []),
    }),
    compaction: narrows,
    retries: above("retries of a model call", () => harness.retries),
    onOutage: narrows,
  }),
  permissions: (rules) =>
    wideningRules(rules).map(([pattern, permission]) => ({
      text: `${permission === "allow" ? "do without asking" : "ask for, though it is denied by default"}: ${visible(pattern)}`,
    })),
  floor: narrows,
  guardian: ({ enabled, atMost }) => [
    ...(enabled === false ? [{ text: "work without being watched by the guardian" }] : []),
    ...(atMost === undefined || atMost === "stop" ? [] : [{ text: `be held by the guardian to no more than: ${atMost}` }]),
  ],
  hooks: ({ before, after }) =>
    [...before.map((hook) => ({ when: "before", hook })), ...after.map((hook) => ({ when: "after", hook }))].map(({ when, hook }) => ({
      text: `run in the sandbox ${when} ${hook.tools === undefined ? "each tool" : visible(hook.tools.join(", "))}: ${visible(hook.command)}`,
    })),
  mcp: (servers) =>
    Object.entries(servers).map(([name, { command, args, env }]) => ({
      text: `start in the sandbox, as the MCP server ${name}: ${visibleWords([...Object.entries(env).map((pair) => pair.join("=")), command, ...args])}`,
    })),
  sandbox: settings<AgentDefinition["sandbox"]>({
    runtime: (runtime) => (runtime === "auto" ? [] : [{ text: `use the runtime ${visible(runtime)}` }]),
    image: (image) => [{ text: `start from the image ${visible(image)}`, ...(isMachinePath(image) && { never: NO_MACHINE_PATH }) }],
    ociRuntime: (name) => [{ text: `use the OCI runtime ${visible(name)}`, never: GIVEN_ONLY("--oci-runtime") }],
    snapshot: (id) => [{ text: `start from the snapshot ${visible(id)}`, never: GIVEN_ONLY("--snapshot") }],
    limits: settings<LimitsRequest>({
      cpus: above("processors", ({ limits }) => limits.cpus ?? defaultLimits.cpus),
      memoryBytes: above("bytes of memory", ({ limits }) => limits.memoryBytes ?? defaultLimits.memoryBytes),
      pids: above("processes", ({ limits }) => limits.pids ?? defaultLimits.pids),
      diskBytes: above("bytes on disk", ({ limits }) => limits.diskBytes),
      wallClockMs: above("milliseconds for one command", ({ limits }) => limits.wallClockMs ?? defaultLimits.wallClockMs),
      outputBytes: above("bytes of output of one command", ({ limits }) => limits.outputBytes),
    }),
    allowRoot: (allowed) => (allowed ? [{ text: "be root inside the sandbox" }] : []),
    env: (variables) => Object.entries(variables).map(([name, value]) => ({ text: `set the variable ${name}=${visible(value)}` })),
    network: ofNetwork,
    secrets: ofSecrets,
    secretNames: (names) => names.map((name) => ({ text: `use your secret ${name}, as your configuration defines it`, field: name })),
    gateway: ofGateway,
    stationAccess: (allowed) => (allowed ? [{ text: "talk to the station from inside", never: GIVEN_ONLY("--station-access") }] : []),
    mounts: (mounts) =>
      mounts.map(({ path, target, access }) => ({
        text: `have the folder ${visible(path)} at ${visible(target)} (${access})`,
        never: GIVEN_ONLY("--mount"),
      })),
    // It says how the mounts are shown, and without mounts nothing.
    mountGuard: narrows,
  }),
  workspace: narrows,
  skills: narrows,
  memory: narrows,
};

const GIVEN_ONLY = (option: string) => `a file cannot choose what is on this machine; give it with ${option}`;
const NO_MACHINE_PATH = "a file cannot make a folder or archive of this machine its image; give it with --image";
const NO_SECRET_SOURCE =
  "a folder's file cannot say where a secret comes from and where it goes; define it in your configuration, and write secrets: [NAME] here";

/** The judge of a group of settings. A setting that is in none of our tables is a right, too. */
function settings<Settings extends object>(judges: Judges<Settings>): Judge<Settings> {
  return (given, usual) =>
    Object.entries(given).flatMap(([key, value]) => {
      if (value === undefined) return [];
      const judge = Object.hasOwn(judges, key) ? (judges[key as keyof Settings] as Judge<unknown>) : unknownSetting(key);
      return judge(value, usual).map((asked) => ({ ...asked, field: asked.field === undefined ? key : `${key}.${asked.field}` }));
    });
}

function unknownSetting(key: string): Judge<unknown> {
  return () => [{ text: `use the setting ${visible(key)}`, never: "it is unknown what it allows" }];
}

/** A bound that is wider than the usual one; null or undefined: there is none, so that any narrows. */
function above(what: string, usualOf: (usual: UsualBounds) => number | undefined): Judge<number> {
  return (value, usual) => {
    const bound = usualOf(usual);
    return bound === undefined || value <= bound ? [] : [{ text: `${value} ${what} (usual: ${bound})` }];
  };
}

function ofNetwork(policy: NetworkPolicy): Asked[] {
  if (policy.mode === "none") return [];
  return [
    { text: policy.mode === "open" ? "reach every public address" : "have a network" },
    ...policy.rules.map((rule) => ({ text: `reach ${visible(showRule(rule))}` })),
    ...policy.registries.map((registry) => ({ text: `reach the package registry ${registry}` })),
    ...(policy.transparent ? [{ text: "have programs carried that know no proxy" }] : []),
  ];
}

function ofSecrets(secrets: Record<string, SecretSpec>): Asked[] {
  return Object.entries(secrets).map(([name, { from, hosts }]) => {
    const source = from === "env" ? `the variable ${name}` : visibleWords(Object.entries(from).flat(2));
    return { text: `use the secret ${name}, from ${source}, for ${visible(hosts.join(", "))}`, field: name, never: NO_SECRET_SOURCE };
  });
}

function ofGateway({ wires, models, costUsdMax, tokensMax }: GatewaySpec): Asked[] {
  const bounds = [
    models === undefined ? "any model" : visible(models.join(", ")),
    costUsdMax === undefined ? "" : `at most $${costUsdMax}`,
    tokensMax === undefined ? "" : `at most ${tokensMax} tokens`,
  ].filter((bound) => bound !== "");
  return [{ text: `ask models of ${wires.join(" and ")} from inside, with your key and at your cost: ${bounds.join(", ")}` }];
}

function ofSubAgents(agents: Record<string, SubAgentDefinition>, usual: UsualBounds): Asked[] {
  return Object.entries(agents).flatMap(([name, agent]) =>
    settings<SubAgentDefinition>(ofOneAgent)(agent, usual).map((asked) => ({ ...asked, text: `${visible(name)}: ${asked.text}` })),
  );
}
