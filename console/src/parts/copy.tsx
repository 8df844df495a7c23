import { Check, Copy as CopyIcon } from "lucide-react";
import { useState } from "react";
import { Button } from "./button.tsx";
import { sayProblem } from "./toasts.tsx";

const SHOWN_MS = 1_200;

export function Copy({ text, what }: { text: string; what: string }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    setDone(true);
    setTimeout(() => setDone(false), SHOWN_MS);
  };
  return (
    <Button
      look="plain"
      label={`Copy ${what}`}
      icon={isDone ? <Check /> : <CopyIcon />}
      onClick={(event) => {
        event.stopPropagation();
        event.preventDefault();
        copy().catch(sayProblem);
      }}
    />
  );
}
