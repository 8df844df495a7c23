import { type ReactNode, useState } from "react";
import { Button } from "./button.tsx";
import { Dialog } from "./dialog.tsx";
import { sayProblem } from "./toasts.tsx";

/** Asks before something that cannot be undone. Closes itself when it is done; a problem is said, and asked again. */
export function Confirm({
  title,
  action,
  onConfirm,
  onClose,
  children,
}: {
  title: string;
  /** What the button says: a verb. */
  action: string;
  onConfirm(): Promise<void>;
  onClose(): void;
  children?: ReactNode;
}) {
  const [isBusy, setBusy] = useState(false);
  const confirm = async () => {
    setBusy(true);
    try {
      await onConfirm();
      onClose();
    } catch (error) {
      sayProblem(error);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={title}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" disabled={isBusy} onClick={() => void confirm()} data-first-focus="">
            {isBusy ? "One moment…" : action}
          </Button>
        </>
      }
    >
      {children}
    </Dialog>
  );
}
