// Runs every model NAME.onnx of a folder by onnxruntime on the inputs of NAME.json, and
// writes what comes out to NAME.out.json. Usage: node check.js CACHE FOLDER, CACHE being
// where the package onnxruntime-node is installed.
const fs = require('fs')
const path = require('path')
const { createRequire } = require('module')

const [cache, folder] = process.argv.slice(2)
const ort = createRequire(path.join(path.resolve(cache), 'package.json'))('onnxruntime-node')

function tensor({ type, dims, values }) {
  if (type === 'string') return new ort.Tensor('string', values, dims)
  if (type === 'int64') return new ort.Tensor('int64', BigInt64Array.from(values, BigInt), dims)
  return new ort.Tensor('float32', Float32Array.from(values, v => v === null ? NaN : v), dims)
}

async function main() {
  const files = fs.readdirSync(folder).filter(f => f.endsWith('.onnx')).sort()
  for (const file of files) {
    const base = path.join(folder, file.slice(0, -'.onnx'.length))
    const feeds = {}
    for (const [name, t] of Object.entries(JSON.parse(fs.readFileSync(base + '.json')))) feeds[name] = tensor(t)
    const session = await ort.InferenceSession.create(base + '.onnx')
    const out = {}
    for (const [name, t] of Object.entries(await session.run(feeds))) {
      out[name] = { type: t.type, dims: t.dims, values: Array.from(t.data, v => typeof v === 'bigint' ? Number(v) : v) }
    }
    fs.writeFileSync(base + '.out.json', JSON.stringify(out))
  }
  console.log(`${files.length} models by onnxruntime ${ort.env.versions.node}`)
}

main().catch(e => { console.error(e); process.exit(1) })
