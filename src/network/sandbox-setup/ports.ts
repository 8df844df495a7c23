/**
 * Ports of the sandbox's loopback that the host serves. High enough for any user, and away from the ports that programs
 * usually listen on.
 */
export const PROXY_PORT = 19_080;
export const GATEWAY_PORT = 19_081;
export const STATION_PORT = 19_082;
