import { once } from "../lib/once.ts";
import type { LocalAudit } from "../station/audit/local-audit.ts";
import type { createInbox } from "../station/inbox/create-inbox.ts";
import type { LocalStation } from "../station/local-station.ts";
import type { LocalSandboxes } from "../station/sandboxes/local-sandboxes.ts";
import type { LocalTokens } from "../station/tokens/local-tokens.ts";
import type { LocalWebhooks } from "../station/webhooks/local-webhooks.ts";
import type { AgentVerbs } from "../verbs/agents.ts";
import type { GuardianVerbs } from "../verbs/guardian.ts";
import type { HealthVerbs } from "../verbs/health.ts";
import type { ImageVerbs } from "../verbs/images.ts";
import type { InboxVerbs } from "../verbs/inbox.ts";
import type { InsideVerbs } from "../verbs/inside.ts";
import type { SecretVerbs } from "../verbs/secrets.ts";
import type { TemplateVerbs } from "../verbs/templates.ts";
import { crashpointFrom } from "./crash-points.ts";
import { lazyGroup } from "./lazy-verbs.ts";
import type { StationParts } from "./station.ts";

/** Opens the log and the runs of the state folder; returns the same station every time. */
export type OpenLocal = () => Promise<LocalStation>;

export function composeAgents(parts: StationParts): AgentVerbs {
  const { stateDir, config } = parts;
  return lazyGroup<AgentVerbs>("agents", async () => {
    const [{ createLocalAgents }, { agentPlaces }] = await Promise.all([
      import("../station/agents/local-agents.ts"),
      import("./local-parts.ts"),
    ]);
    return createLocalAgents({ stateDir, places: agentPlaces(parts), limits: config.limits, defaults: config.agent });
  });
}

export function composeAudit(local: OpenLocal): LocalAudit {
  return lazyGroup<LocalAudit>(
    "audit",
    async () => {
      const { createLocalAudit } = await import("../station/audit/local-audit.ts");
      return createLocalAudit((await local()).core);
    },
    { recordCall: "answer", recordFailure: "answer", forgetOld: "answer" },
  );
}

export function composeGuardian({ config }: StationParts, local: OpenLocal): GuardianVerbs {
  return lazyGroup<GuardianVerbs>("guardian", async () => {
    const { createLocalGuardian } = await import("../station/guardian/local-guardian.ts");
    return createLocalGuardian({ ...(await local()).core, config });
  });
}

/** Returns null if the guardian is switched off; its code is then not loaded. */
export async function startGuardianOf(
  parts: StationParts,
  local: OpenLocal,
  onDefect: (error: unknown) => void,
): Promise<AsyncDisposable | null> {
  const settings = parts.config.guardian;
  if (settings.watch === "none") return null;
  const [{ startGuardian }, { resolveModel }, { modelOptions }] = await Promise.all([
    import("../station/guardian/start-guardian.ts"),
    import("../agent/model/resolve-model.ts"),
    import("./local-parts.ts"),
  ]);
  const model = (name: string) => resolveModel(name, modelOptions(parts));
  return startGuardian({ local: await local(), settings, model, onDefect });
}

export function composeHealth({ stateDir, config }: StationParts, local: OpenLocal): HealthVerbs {
  return lazyGroup<HealthVerbs>("health", async () => {
    const [{ createLocalHealth }, { createStore }] = await Promise.all([
      import("../station/health/local-health.ts"),
      import("../sandbox/store.ts"),
    ]);
    const log = async () => (await local()).core.log;
    return createLocalHealth({ stateDir, store: createStore({ stateDir }), log, settings: config.health });
  });
}

export function composeImages({ runtimes }: StationParts): ImageVerbs {
  return lazyGroup<ImageVerbs>("images", async () => {
    const { createLocalImages } = await import("../station/images/local-images.ts");
    return createLocalImages({ runtimes });
  });
}

export function composeTemplates(parts: StationParts, local: OpenLocal, sandboxes: LocalSandboxes): TemplateVerbs {
  return lazyGroup<TemplateVerbs>("templates", async () => {
    const { createLocalTemplates } = await import("../station/templates/local-templates.ts");
    const treeOfUpload = async (upload: string, by: { owner: string }) => (await local()).uploads.treeOf(upload, by);
    return createLocalTemplates({ ...parts, sandboxes, treeOfUpload, crashpoint: crashpointFrom(parts.variable) });
  });
}

export function composeInbox(station: Parameters<typeof createInbox>[0]): InboxVerbs {
  return lazyGroup<InboxVerbs>("inbox", async () => (await import("../station/inbox/create-inbox.ts")).createInbox(station));
}

export function composeInside({ stateDir }: StationParts, local: OpenLocal): InsideVerbs {
  return lazyGroup<InsideVerbs>("inside", async () => {
    const [{ createLocalInside }, { createStore }, { findRun }] = await Promise.all([
      import("../station/inside/local-inside.ts"),
      import("../sandbox/store.ts"),
      import("../station/names/find-run.ts"),
    ]);
    const log = async () => (await local()).core.log;
    return createLocalInside({ stateDir, store: createStore({ stateDir }), log, findRun: async (word) => findRun(word, await log()) });
  });
}

export function composeSecrets({ stateDir }: StationParts): SecretVerbs {
  return lazyGroup<SecretVerbs>("secrets", async () => {
    const { createLocalSecrets } = await import("../station/secrets/local-secrets.ts");
    return createLocalSecrets({ stateDir });
  });
}

export function composeTokens({ stateDir }: StationParts): LocalTokens {
  return lazyGroup<LocalTokens>("tokens", async () => (await import("../station/tokens/local-tokens.ts")).createLocalTokens({ stateDir }), {
    authenticate: "answer",
  });
}

/** Closing webhooks that were never opened does nothing. */
export function composeWebhooks({ stateDir, say }: StationParts, local: OpenLocal): LocalWebhooks {
  const open = once(async () => {
    const { createLocalWebhooks } = await import("../station/webhooks/local-webhooks.ts");
    return createLocalWebhooks({ stateDir, notice: say, lastPosition: async () => (await local()).core.log.lastPosition() });
  });
  const verbs = lazyGroup<LocalWebhooks>("webhooks", open, { deliver: "answer", close: "answer" });
  return { ...verbs, close: async () => await (await open.opened())?.close() };
}
