import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { functionsIn, installedFunctions } from '../../scripts/coverage/header-functions.js';
import { coveragePage, writtenPage } from '../../scripts/coverage/page.js';
import { sections } from '../../scripts/coverage/table.js';

const root = path.join(import.meta.dirname, '../..');
const rows = sections.flatMap((section) => section.rows);

/** The names that lib/index.ts exports, each with its comment, and the comments of its members. */
function publicNames(): Map<string, { comment: string; members: Map<string, string> }> {
  const index = path.join(root, 'lib/index.ts');
  const { options } = ts.parseJsonConfigFileContent(
    ts.readConfigFile(path.join(root, 'tsconfig.json'), (file) => readFileSync(file, 'utf8')).config,
    ts.sys,
    root,
  );
  const program = ts.createProgram([index], options);
  const checker = program.getTypeChecker();
  const module = checker.getSymbolAtLocation(program.getSourceFile(index)!)!;
  return new Map(
    checker.getExportsOfModule(module).map((symbol) => {
      const target = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      const comment = (of: ts.Symbol) => ts.displayPartsToString(of.getDocumentationComment(checker));
      const members = checker.getDeclaredTypeOfSymbol(target).getProperties();
      return [
        symbol.name,
        {
          comment: comment(target),
          members: new Map(members.map((member) => [member.name, comment(member)])),
        },
      ];
    }),
  );
}

const exported = publicNames();

describe('the table of coverage', () => {
  it('has a row for every public function of the installed headers, and only one', () => {
    const names = rows.map((row) => row.name);
    expect(installedFunctions().filter((name) => !names.includes(name))).toEqual([]);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  it('names places that are in the public interface', () => {
    const missing = rows
      .flatMap((row) => row.places)
      .filter((place) => {
        const [name, member] = place.split('.');
        return member === undefined ? !exported.has(name!) : !exported.get(name!)?.members.has(member);
      });
    expect(missing).toEqual([]);
  });

  it('agrees with the comments on what was not run on a NIC', () => {
    const places = rows.filter((row) => row.status === 'checked').flatMap((row) => row.places);
    // Of these, something else works on rxe, or the comment is that of another.
    const others =
      /\.close$|Sync$|\.handle$|^QueuePair\.postSendEx$|^Context\.(?:queryPortSpeed|commandFd)$|^SendRequest\./;
    const silent = places.filter((place) => {
      const [name, member] = place.split('.');
      const entry = exported.get(name!)!;
      const comments = [entry.comment, entry.members.get(member ?? '') ?? ''];
      return !others.test(place) && !comments.some((comment) => /not\s+run\s+on\s+a\s+NIC/.test(comment));
    });
    expect(silent).toEqual([]);
  });

  it('names tests that exist, and gives a reason where there is no place', () => {
    expect(rows.flatMap((row) => row.tests).filter((test) => !existsSync(path.join(root, test)))).toEqual([]);
    expect(rows.filter((row) => row.places.length === 0 && !row.note)).toEqual([]);
  });

  it('is what docs/coverage.md shows', async () => {
    expect(writtenPage()).toBe(await coveragePage());
  });
});

it('reads declarations, inline functions and attributes, and nothing else, as functions', () => {
  const source = `
    /* int ibv_in_comment(void); */
    // int ibv_in_line_comment(void);
    #define ibv_macro(x) \\
      ibv_in_macro(x)
    extern "C" {
    struct ibv_thing { int (*ibv_pointer)(int); };
    enum ibv_kind { IBV_KIND = 1 };
    const char *ibv_declared(enum ibv_kind kind);
    int  __attribute__((const)) ibv_with_attribute(
        int a);
    static inline struct ibv_thing *ibv_inline(struct ibv_thing *t) { return ibv_called(t); }
    int __ibv_private(void);
    struct ibv_thing;
    }`;
  expect(functionsIn(source)).toEqual(['ibv_declared', 'ibv_with_attribute', 'ibv_inline']);
});
