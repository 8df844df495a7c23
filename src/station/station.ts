import type { AgentVerbs } from "./agents/verbs.ts";
import type { AuditVerbs } from "./audit/verbs.ts";
import type { GuardianVerbs } from "./guardian/verbs.ts";
import type { HealthVerbs } from "./health/verbs.ts";
import type { ImageVerbs } from "./images/verbs.ts";
import type { InboxVerbs } from "./inbox/verbs.ts";
import type { InsideVerbs } from "./inside/verbs.ts";
import type { MachineVerbs } from "./machine/verbs.ts";
import type { MergeVerbs } from "./merges/verbs.ts";
import type { NetworkVerbs } from "./networks/verbs.ts";
import type { RunVerbs } from "./runs/verbs.ts";
import type { SandboxVerbs } from "./sandboxes/verbs.ts";
import type { SecretVerbs } from "./secrets/verbs.ts";
import type { SessionVerbs } from "./sessions/verbs.ts";
import type { ShipVerbs } from "./ships/verbs.ts";
import type { SpecVerbs } from "./specs/verbs.ts";
import type { TokenVerbs } from "./tokens/verbs.ts";
import type { UploadVerbs } from "./uploads/verbs.ts";
import type { WebhookVerbs } from "./webhooks/verbs.ts";
import type { WorkflowVerbs } from "./workflows/verbs.ts";

/**
 * Everything a user can do. The command line, the library and the servers are faces over it: they parse, call and
 * print. Arguments and answers are plain data of the contract, so that it can stand at the other end of a wire; only
 * streams and the handles of sandboxes are live.
 */
export interface Station extends AsyncDisposable {
  readonly runs: RunVerbs;
  readonly sessions: SessionVerbs;
  readonly agents: AgentVerbs;
  readonly sandboxes: SandboxVerbs;
  readonly images: ImageVerbs;
  readonly networks: NetworkVerbs;
  readonly machine: MachineVerbs;
  readonly tokens: TokenVerbs;
  readonly audit: AuditVerbs;
  readonly health: HealthVerbs;
  readonly guardian: GuardianVerbs;
  readonly uploads: UploadVerbs;
  readonly secrets: SecretVerbs;
  readonly inside: InsideVerbs;
  readonly webhooks: WebhookVerbs;
  readonly specs: SpecVerbs;
  readonly ships: ShipVerbs;
  readonly merges: MergeVerbs;
  readonly workflows: WorkflowVerbs;
  readonly inbox: InboxVerbs;
}
