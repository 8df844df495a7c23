import type { GatewayWire } from "../../contract/network/network.ts";
import { GATEWAY_KEY, gatewayUrls } from "./inside-env.ts";

/** Claude Code remembers an approved key by its last characters. */
const KEY_CHARACTERS = 20;

/**
 * Files in the home of a sandbox with a gateway that let agents start without their first-run questions: which theme,
 * which key, whether to trust the folder. All of it is generated here, and nothing comes from the user's own settings.
 * Paths are relative to the home.
 */
export const agentSeeds: Record<GatewayWire, readonly { path: string; text: string }[]> = {
  anthropic: [{ path: ".claude.json", text: claudeSettings() }],
  openai: [{ path: ".codex/config.toml", text: codexSettings() }],
};

function claudeSettings(): string {
  const settings = {
    hasCompletedOnboarding: true,
    theme: "dark",
    customApiKeyResponses: { approved: [GATEWAY_KEY.slice(-KEY_CHARACTERS)], rejected: [] },
    // The folder is a copy or was shared on purpose, and the sandbox controls permissions instead.
    bypassPermissionsModeAccepted: true,
    projects: { "/workspace": { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
  };
  return `${JSON.stringify(settings, null, 2)}\n`;
}

/**
 * A separate provider, because the built-in one requires a login, does not read OPENAI_BASE_URL and tries WebSockets
 * first.
 */
function codexSettings(): string {
  return [
    'model_provider = "caisson"',
    "check_for_update_on_startup = false",
    "",
    "[model_providers.caisson]",
    'name = "Caisson\'s gateway"',
    `base_url = "${gatewayUrls.openai}"`,
    'env_key = "OPENAI_API_KEY"',
    'wire_api = "responses"',
    "",
    '[projects."/workspace"]',
    'trust_level = "trusted"',
    "",
  ].join("\n");
}
