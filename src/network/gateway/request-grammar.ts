import type { GatewayWire } from "../../contract/network/network.ts";
import type { AnswerKind } from "./routes.ts";

/**
 * What a field means to the provider. `plain`: a parameter, a label, or the program's own JSON, from which nothing is
 * fetched, run or looked up. `content`: messages, items and parts. `tools`: a list of tools. `refused`: names something
 * stored or done on the provider's side.
 */
export type FieldKind = "plain" | "content" | "tools" | "toolChoice" | "refused";

export type Fields = ReadonlyMap<string, FieldKind>;

const fields = (kinds: Partial<Record<FieldKind, string>>): Fields =>
  new Map(
    Object.entries(kinds).flatMap(([kind, names]) =>
      names
        .split(/\s+/)
        .filter(Boolean)
        .map((name) => [name, kind as FieldKind] as const),
    ),
  );

const anthropicMessages = fields({
  plain: `model max_tokens metadata stop_sequences stream temperature top_k top_p thinking output_config output_format context_management
    service_tier cache_control speed inference_geo fallbacks betas anthropic_version anthropic_beta`,
  content: "messages system",
  tools: "tools",
  toolChoice: "tool_choice",
  refused: "mcp_servers container skills",
});

const openaiCommon = `model metadata client_metadata user safety_identifier prompt_cache_key prompt_cache_retention prompt_cache_options service_tier store stream
  stream_options temperature top_p top_logprobs seed models parallel_tool_calls verbosity moderation`;

const openaiResponses = fields({
  plain: `${openaiCommon} include max_output_tokens max_tool_calls reasoning text truncation context_management generate`,
  content: "input instructions",
  tools: "tools",
  toolChoice: "tool_choice",
  refused: "previous_response_id conversation prompt background web_search_options plugins mcp_servers",
});

const openaiChat = fields({
  plain: `${openaiCommon} functions function_call frequency_penalty presence_penalty repetition_penalty logit_bias logprobs max_tokens
    max_completion_tokens modalities n reasoning_effort response_format stop top_k min_p chat_template_kwargs thinking reasoning guided_json
    usage include_reasoning options format keep_alive`,
  content: "messages prediction",
  tools: "tools",
  toolChoice: "tool_choice",
  refused: "web_search_options plugins prompt conversation previous_response_id background mcp_servers",
});

const openaiEmbeddings = fields({
  plain: "model encoding_format dimensions user input_type task truncate",
  content: "input",
});

/** Returns the top-level fields of a request, by endpoint. Counting tokens reads the same body as the counted call. */
export function topFields(wire: GatewayWire, kind: AnswerKind): Fields {
  if (wire === "anthropic") return anthropicMessages;
  if (kind === "chat") return openaiChat;
  return kind === "embeddings" ? openaiEmbeddings : openaiResponses;
}

/** The types of messages, items and parts of content. One without a type is a message or text. */
export const contentTypes: Record<GatewayWire, RegExp> = {
  anthropic:
    /^(message|text|image|document|search_result|tool_use|tool_result|tool_reference|thinking|redacted_thinking|compaction|server_tool_use|tool_search_tool_result|tool_search_tool_search_result|mid_conv_system)$/,
  openai: new RegExp(
    `^(${[
      "message|text|input_text|output_text|summary_text|reasoning_text|refusal|content|thinking",
      "image_url|input_image|file|input_file|input_audio|computer_screenshot|encrypted_content",
      "function|function_call|function_call_output|custom|custom_tool_call|custom_tool_call_output|reasoning",
      "local_shell_call|local_shell_call_output|shell_call|shell_call_output|apply_patch_call|apply_patch_call_output",
      "computer_call|computer_call_output|additional_tools|tool_search_call|tool_search_output",
      "compaction|compaction_summary|compaction_trigger|context_compaction|agent_message|web_search_call",
    ].join("|")})$`,
  ),
};

/**
 * Tools that the program inside runs itself, or that only read the conversation. All other kinds run on the provider's
 * side.
 */
export const ownTools: Record<GatewayWire, RegExp> = {
  anthropic: /^(custom|bash_\d+|text_editor_\d+|computer_\d+|memory_\d+|tool_search_tool_\w+)$/,
  openai: /^(function|custom|local_shell|apply_patch|computer|computer_use_preview|namespace|tool_search)$/,
};

/**
 * Fields within content and tools that hold the program's or the model's own JSON and notes, which the provider only
 * reads.
 */
export const opaqueFields: ReadonlySet<string> = new Set([
  ..."input_schema parameters schema metadata arguments annotations citations logprobs cache_control action".split(" "),
  ..."encrypted_content signature tool_calls function_call operation".split(" "),
]);

/** Fields within content and tools that name something on the provider's side or on the network. */
export const reachingFields =
  /^(file_ids?|input_file_id|server_url|server_label|server_description|connector_id|connectors?|authorization|container(_id|_upload)?|vector_store_ids?|mcp_servers?|skill_id|skills|conversation(_id)?|previous_response_id|prompt_id|response_id|item_reference)$/;
/** Fields with a URL. They too name something on the network, unless the value is the content itself: `data:…`. */
export const urlFields = /(^|_)ur[il]s?$/;

/** Names of unknown fields that could turn a feature on. */
export const switchNames =
  /search|web|brows|fetch|url|uri|tool|file|plugin|mcp|connector|store|background|ground|retriev|container|skill|prompt|session|conversation|agent|exec|interpreter/i;

/** Models that search on their own, whatever the request says. */
export const searchingModels = /search|deep-?research|(^|\/)sonar|:online$|(^|\/)compound/i;
