import { createContext, type ReactNode, useContext, useMemo } from "react";
import { type Client, connect } from "../../../src/client/connect.ts";

interface StationValue {
  client: Client;
  signOut(): void;
}

const StationContext = createContext<StationValue | null>(null);

export function StationProvider({ token, signOut, children }: { token: string; signOut: () => void; children: ReactNode }) {
  const client = useMemo(() => connect({ url: location.origin, token }), [token]);
  return <StationContext value={{ client, signOut }}>{children}</StationContext>;
}

/** Returns the same client that other programs use. */
export function useStation(): Client {
  return useStationValue().client;
}

export function useSignOut(): () => void {
  return useStationValue().signOut;
}

function useStationValue(): StationValue {
  const value = useContext(StationContext);
  if (value === null) throw new Error("no StationProvider around this component");
  return value;
}
