import { QueryClientProvider } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useState } from "react";
import { Redirect, Route, Router, Switch } from "wouter";
import { Loading } from "./parts/loading.tsx";
import { Toasts } from "./parts/toasts.tsx";
import { aroundNavigation } from "./parts/unsaved.ts";
import { Keys } from "./shell/keys.tsx";
import { LeaveDialog } from "./shell/leave-dialog.tsx";
import { NotFound } from "./shell/not-found.tsx";
import { Notices } from "./shell/notices.tsx";
import { Shell } from "./shell/shell.tsx";
import { SignIn } from "./shell/sign-in.tsx";
import { SwitchToken } from "./shell/switch-token.tsx";
import { LiveProvider } from "./station/live.tsx";
import { createQueryClient } from "./station/query-client.ts";
import { broughtToken, forgetToken, keepToken, keptToken } from "./station/session.ts";
import { StationProvider } from "./station/station.tsx";

const Run = lazy(() => import("./pages/run/run.tsx"));
const Runs = lazy(() => import("./pages/runs/runs.tsx"));
const Sandboxes = lazy(() => import("./pages/sandboxes/sandboxes.tsx"));
const Sandbox = lazy(() => import("./pages/sandbox/sandbox.tsx"));
const Start = lazy(() => import("./pages/start/start.tsx"));
const Inbox = lazy(() => import("./pages/inbox/inbox.tsx"));
const Settings = lazy(() => import("./pages/settings/settings.tsx"));
const Work = lazy(() => import("./pages/work-list/work.tsx"));
const Workflow = lazy(() => import("./pages/workflow/workflow.tsx"));
const Spec = lazy(() => import("./pages/spec/spec.tsx"));
const Ship = lazy(() => import("./pages/ship/ship.tsx"));
const Merge = lazy(() => import("./pages/merge/merge.tsx"));
const Welcome = lazy(() => import("./pages/welcome/welcome.tsx"));

export function App() {
  const [{ token, brought }, setTokens] = useState(arrivingTokens);
  const [queries] = useState(createQueryClient);
  const setToken = (given: string | null) => setTokens({ token: given, brought: null });
  const takeToken = (given: string) => {
    keepToken(given);
    queries.clear();
    setToken(given);
  };
  useEffect(() => {
    const onHash = () => setTokens(arrivingTokens());
    window.addEventListener("hashchange", onHash);
    return () => window.removeEventListener("hashchange", onHash);
  }, []);
  if (token === null) return <SignIn onToken={takeToken} />;
  if (brought !== null) return <SwitchToken kept={token} brought={brought} onChosen={takeToken} />;
  const signOut = () => {
    forgetToken();
    queries.clear();
    setToken(null);
  };
  return (
    <QueryClientProvider client={queries}>
      <StationProvider token={token} signOut={signOut}>
        <LiveProvider>
          <Router aroundNav={aroundNavigation}>
            <Shell>
              <Suspense fallback={<Loading />}>
                <Pages />
              </Suspense>
            </Shell>
            <Keys />
            <Notices />
            <Toasts />
            <LeaveDialog />
          </Router>
        </LiveProvider>
      </StationProvider>
    </QueryClientProvider>
  );
}

/** A token of the address is taken where none is kept; otherwise the user decides. */
function arrivingTokens(): { token: string | null; brought: string | null } {
  const [token, brought] = [keptToken(), broughtToken()];
  if (brought === null || brought === token) return { token, brought: null };
  if (token !== null) return { token, brought };
  keepToken(brought);
  return { token: brought, brought: null };
}

function Pages() {
  return (
    <Switch>
      <Route path="/">
        <Redirect to="/runs" replace />
      </Route>
      <Route path="/runs" component={Runs} />
      <Route path="/runs/:run" component={Run} />
      <Route path="/sandboxes" component={Sandboxes} />
      <Route path="/sandboxes/:sandbox" component={Sandbox} />
      <Route path="/work" component={Work} />
      <Route path="/workflows/:workflow" component={Workflow} />
      <Route path="/specs/:spec" component={Spec} />
      <Route path="/ships/:ship" component={Ship} />
      <Route path="/merges/:merge" component={Merge} />
      <Route path="/start" component={Start} />
      <Route path="/inbox" component={Inbox} />
      <Route path="/settings/:part?" component={Settings} />
      <Route path="/welcome" component={Welcome} />
      <Route component={NotFound} />
    </Switch>
  );
}
