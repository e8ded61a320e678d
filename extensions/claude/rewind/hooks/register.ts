// Rewind inside Claude Code: slash commands that cost no model call, restore in the running
// session, and the number of checkpoints in the footer. All the work is done by the rewind command.
//
// `claude plugin validate` follows $ only into functions declared at the top of this file.
import type { Register } from 'claude-code'

// `rewind init` writes the absolute path of its interpreter here.
const REWIND: string[] = ['rewind'] /* the command */

const SCOPES: Record<string, string[]> = {
  '': [], both: [], files: ['--code-only'], code: ['--code-only'],
  conversation: ['--context-only'], context: ['--context-only'],
}
const COMMANDS: [string, string, string][] = [
  ['rewind-list', 'List the checkpoints', ''],
  ['rewind-restore', 'Go back to checkpoint N', '<n> [files|conversation|both]'],
  ['rewind-undo', 'Step back to the files before the last change', ''],
  ['rewind-redo', 'Step forward again', ''],
  ['rewind-diff', 'Show what changed since checkpoint N', '<n>'],
  ['rewind-save', 'Make a checkpoint now', '[label]'],
]

async function run($: any, args: string[]) {
  const ended = await $.process.run([...REWIND, ...args])
  const failed = (ended.stderr || ended.stdout || 'rewind ended with ' + ended.exitCode).trim()
  return { ok: ended.exitCode === 0, out: ended.stdout as string, failed }
}

async function answer($: any, args: string[]) {
  const done = await run($, args)
  return { text: (done.ok ? done.out : done.failed).trimEnd() || 'done' }
}

async function footer($: any) {
  const line = await run($, ['statusline'])
  if (line.ok && line.out.trim()) $.ui.status(line.out.trim())
}

export const register: Register = on => {
  on('session.start', async ($, e, next) => {
    for (const [name, description, argumentHint] of COMMANDS) {
      await $.command.register({ name, description, argumentHint })
    }
    await footer($)
    return next(e)
  })

  on('turn.complete', async ($, e, next) => {
    const result = await next(e)
    await footer($)
    return result
  })

  on('command.run', { command: 'rewind-list' }, async ($, e) => answer($, ['list', '--limit', '20']))
  on('command.run', { command: 'rewind-undo' }, async ($, e) => answer($, ['undo']))
  on('command.run', { command: 'rewind-redo' }, async ($, e) => answer($, ['redo']))

  on('command.run', { command: 'rewind-diff' }, async ($, e) => {
    const n = (e.args || '').trim()
    return answer($, n ? ['diff', n] : ['diff'])
  })

  on('command.run', { command: 'rewind-save' }, async ($, e) => {
    const done = await answer($, ['save', '--message', (e.args || '').trim()])
    await footer($)
    return done
  })

  on('command.run', { command: 'rewind-restore' }, async ($, e) => {
    const words = (e.args || '').trim().split(/\s+/)
    const scope = SCOPES[words.length > 1 ? words[words.length - 1] : '']
    const target = (scope && words.length > 1 ? words.slice(0, -1) : words).join(' ')
    if (!target) return { text: 'which checkpoint? /rewind-list shows them' }
    const done = await run($, ['restore', '--yes', '--json', ...(scope || []), '--', target])
    if (!done.ok) return { text: done.failed }
    const result = JSON.parse(done.out)
    const resume = result.resume
    if (!resume) return { text: 'files restored; the conversation goes on as it is' }
    // A session can be replaced only after this command has been answered.
    $.clock.after(50, async () => {
      try {
        if (resume.session) await $.command.run({ command: 'resume', args: resume.session })
        else await $.command.run({ command: 'clear', args: '' })
        if (resume.prompt) await $.prompt.fill({ text: resume.prompt })
        await footer($)
      } catch (problem) {
        $.ui.toast('rewind: type /resume ' + resume.session + ' (' + String(problem) + ')')
      }
    })
    return { text: 'rewinding to checkpoint ' + target }
  })
}
