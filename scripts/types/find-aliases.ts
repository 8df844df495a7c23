import { type Symbol as CheckedSymbol, type Project, SymbolFlags, TypeFlags } from "typescript/unstable/sync";

/** The exported type aliases of the sources, by the type that each stands for: so that a type is written out once. */
export function findAliases(project: Project, sources: string): ReadonlyMap<number, CheckedSymbol> {
  const { checker, program } = project;
  const aliases = new Map<number, CheckedSymbol>();
  const isOurs = (path: string) => path.startsWith(`${sources}/`) && !path.endsWith(".test.ts");
  for (const path of [...program.getSourceFileNames()].filter(isOurs).sort()) {
    const file = program.getSourceFile(path);
    const module = file === undefined ? undefined : checker.getSymbolAtLocation(file);
    if (module === undefined) continue;
    for (const symbol of checker.getExportsOfModule(module)) {
      if (!(symbol.flags & SymbolFlags.TypeAlias) || isGeneric(project, symbol)) continue;
      const type = checker.getDeclaredTypeOfSymbol(symbol);
      const isWorthIt =
        (type.flags & (TypeFlags.Object | TypeFlags.Union | TypeFlags.Intersection)) !== 0 && !(type.flags & TypeFlags.Boolean);
      const isNamed = ((type.getSymbol()?.flags ?? 0) & (SymbolFlags.Interface | SymbolFlags.Class)) !== 0;
      if (isWorthIt && !isNamed && !aliases.has(type.id)) aliases.set(type.id, symbol);
    }
  }
  return aliases;
}

function isGeneric(project: Project, symbol: CheckedSymbol): boolean {
  return symbol.declarations.some(
    (each) => (each.resolve(project) as { typeParameters?: unknown } | undefined)?.typeParameters !== undefined,
  );
}
