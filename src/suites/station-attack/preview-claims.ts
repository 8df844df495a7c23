import type { NotTried } from "../attack/claim.ts";
import { ask, json } from "./ask.ts";
import { defineStationClaim, type StationClaim, type StationContext } from "./station-claim.ts";

interface SeenPreview {
  /** The status of a request without the preview's token. */
  bare: number;
  /** The status of a request with an API token, which is not the preview's. */
  withApiToken: number;
  /** The status when another owner closes it. */
  closedByOther: number;
  isListedToOther: boolean;
}

/** Attacks on previews by callers without their address. */
export const previewClaims: StationClaim[] = [
  defineStationClaim<SeenPreview>({
    id: "P01",
    title: "A preview requires its token",
    group: "previews",
    tried: "Opened a preview of a sandbox's port, requested it without its token and with another, and looked for it as another owner.",
    observe: observePreview,
    judge: ({ bare, withApiToken, closedByOther, isListedToOther }) => [
      ...(bare === 401 || bare === 403 || bare === 404 ? [] : [`without its token it was answered with ${bare}`]),
      ...(withApiToken === 401 || withApiToken === 403 || withApiToken === 404 ? [] : [`with an API token: ${withApiToken}`]),
      ...(closedByOther === 404 ? [] : [`another owner's request to close it was answered with ${closedByOther}`]),
      ...(isListedToOther ? ["it is listed to another owner"] : []),
    ],
  }),
];

async function observePreview(context: StationContext): Promise<SeenPreview | NotTried> {
  const { ada, bob } = context;
  const creation = await ask(context, "/v1/sandboxes", { token: ada, body: { spec: {} }, timeoutMs: 60_000 });
  const sandbox = json(creation.text).id;
  if (typeof sandbox !== "string") return { notTried: "unverifiable", reason: `no sandbox could be created here (${creation.status})` };
  try {
    const opened = await ask(context, `/v1/sandboxes/${sandbox}/previews`, { token: ada, body: { port: 8080 } });
    const { id, plainUrl } = json(opened.text);
    if (typeof plainUrl !== "string") return { notTried: "unverifiable", reason: `no preview could be opened (${opened.status})` };
    const url = plainUrl.replace(/\/$/, "");
    return {
      bare: (await ask({ url }, "/")).status,
      withApiToken: (await ask({ url }, "/", { token: ada })).status,
      closedByOther: (await ask(context, `/v1/previews/${String(id)}`, { method: "DELETE", token: bob })).status,
      isListedToOther: (await ask(context, "/v1/previews", { token: bob })).text.includes(sandbox),
    };
  } finally {
    await ask(context, `/v1/sandboxes/${sandbox}`, { method: "DELETE", token: ada, timeoutMs: 60_000 });
  }
}
