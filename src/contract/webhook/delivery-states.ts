/** This file has no schemas, because neither help nor a list of webhooks loads schemas. */
export const deliveryStates = ["delivered", "retrying", "dead"] as const;
