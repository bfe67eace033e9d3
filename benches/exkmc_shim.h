/* Lets the C file in the ExKMC sdist, generated in 2020 for the Pythons and numpys of that time,
 * compile on today's. Force-included before it (-include); touches only the glue around the kernel:
 * code objects and line numbers of tracebacks, and numpy's descriptor, which it declares but never
 * reads. The loops that are measured stay as published. */
#define PYSTON_VERSION 1 /* "no interpreter internals": take the portable branches */
#define HAVE_STDARG_PROTOTYPES 1
#define CYTHON_USE_UNICODE_INTERNALS 0
#define CYTHON_USE_TYPE_SLOTS 0

#include <Python.h>
#include <frameobject.h>
#include <numpy/arrayobject.h>

#undef PyCode_New
#define PyCode_New(a, k, l, s, f, code, c, n, v, fv, cell, file, name, line, lnos) \
    PyCode_NewEmpty(PyUnicode_AsUTF8(file), PyUnicode_AsUTF8(name), line)
#define PyFrame_SetLineNumber(frame, lineno) ((void)0)
#define _PyUnicode_Ready(text) 0
#if PY_VERSION_HEX >= 0x030C0000
#define curexc_traceback current_exception
#endif
#if PY_VERSION_HEX >= 0x030D0000
#define _PyLong_AsByteArray(value, bytes, n, little, is_signed) \
    _PyLong_AsByteArray(value, bytes, n, little, is_signed, 1)
#endif

typedef struct {
    PyObject_HEAD
    char kind, type, byteorder;
    int type_num, elsize, alignment;
    struct _arr_descr *subarray;
    PyObject *fields, *names;
} bench_descr;
#define PyArray_Descr bench_descr
