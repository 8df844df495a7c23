/** Without schemas, which neither help nor a list of webhooks loads. */
export const deliveryStates = ["delivered", "retrying", "dead"] as const;
